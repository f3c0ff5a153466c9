"""A measure of each of several runs, read from as few of their tables as it needs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgesim.analysis.convergence import by_own_scale
from edgesim.analysis.metrics import FINAL_EVALUATIONS
from edgesim.analysis.participation import BY_CLASS, course_measures
from edgesim.analysis.runs import Run
from edgesim.analysis.static_pairs import pairs
from edgesim.analysis.summary import (
    COURSE_MEASURES,
    PRIVACY_MEASURES,
    TIMING_MEASURES,
    TO_STAY,
    TO_TARGET,
    Measures,
    measure,
    measure_rounds,
)
from edgesim.errors import EdgesimError
from edgesim.registry import did_you_mean

_OF_ROUNDS = ("scheduled", "arrived", "miss_rate", "final_accuracy")
_OWN = ("rounds_to_own_peak", "seconds_to_own_peak", "loss_roughness")
_GROUPS = (TO_TARGET, TO_STAY, _OF_ROUNDS, TIMING_MEASURES, PRIVACY_MEASURES, COURSE_MEASURES, _OWN)
KNOWN = tuple(dict.fromkeys(name for group in _GROUPS for name in group))
"""Measures of a run by name. Other names are `_COLUMNS` of ``rounds`` and rows of ``metrics`` without keys: their mean
over the last five rounds that have them."""
_COLUMNS = ("train_loss", "test_loss", "macro_f1")
_NAMED = 3


def outcomes(runs: Sequence[Run], names: Sequence[str], target: float | None) -> dict[Path, Measures]:
    """The named measures of every run, by its folder; of a run that never reached the target with ``NAME_bound``.

    Raises `EdgesimError` for a measure that no run has, or that some lack, and for one to a target without a target.
    """
    if target is None and (wanting := [name for name in names if name in TO_TARGET + TO_STAY]):
        raise EdgesimError(f"--metric {wanting[0]}: needs a target accuracy; add --target, such as --target 0.75")
    found: dict[Path, Measures] = {run.folder: {} for run in runs}
    if "idp_points" in names:
        found |= {pair.run.folder: {"idp_points": pair.idp_points} for pair in pairs(runs)[0]}
    for run in runs:
        found[run.folder] |= _of(run, names, target)
    for name in names:
        lacking = [run for run in runs if not {name, f"{name}_bound"} & found[run.folder].keys()]
        if len(lacking) == len(runs):
            others = dict.fromkeys([*KNOWN, *_rows(runs[0])])
            known = f"; known: {', '.join(others)}" if name not in KNOWN else ""
            raise EdgesimError(f"--metric {name}: no run has it{did_you_mean(name, others) or known}")
        if lacking:
            first = ", ".join(str(run.folder) for run in lacking[:_NAMED])
            more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
            raise EdgesimError(f"--metric {name}: null in {len(lacking)} of {len(runs)} runs: {first}{more}")
    return found


def _of(run: Run, names: Sequence[str], target: float | None) -> Measures:
    """Those of the measures that a run has; each group of them is worked out only if one of it is asked for."""
    wanted = set(names)
    values: dict[str, float] = {}
    if wanted & {*TO_TARGET, *TO_STAY, *_OF_ROUNDS}:
        values |= measure_rounds(run, target if wanted & {*TO_TARGET, *TO_STAY} else None)
    if wanted & set(COURSE_MEASURES) or any(name.startswith(BY_CLASS) for name in wanted):
        values |= course_measures(run)
    if wanted & ({*TIMING_MEASURES, *PRIVACY_MEASURES} - {*_OF_ROUNDS}):
        values |= measure(run, None)
    if wanted & set(_OWN) and not run.tests.empty:
        values |= by_own_scale(run)
    others = wanted - set(KNOWN) - values.keys()
    rows = _rows(run) if others else {}
    values |= {name: rows[name] for name in others if name in rows}
    bounds = {f"{name}_bound" for name in wanted}
    return {name: value for name, value in values.items() if name in wanted | bounds and not np.isnan(value)}


def _rows(run: Run) -> dict[str, float]:
    """Of `_COLUMNS` and of each name in `metrics` without keys, the mean over the last rounds that have it."""
    metrics = run.metrics[(run.metrics["key"] == "") & (run.metrics["round"] > 0)].sort_values("round", kind="stable")
    series = {str(name): rows["value"] for name, rows in metrics.groupby("name")}
    series |= {name: run.rounds.sort_values("round")[name].dropna() for name in _COLUMNS}
    return {name: float(rows.tail(FINAL_EVALUATIONS).mean()) for name, rows in series.items() if len(rows)}
