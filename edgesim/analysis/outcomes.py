"""A measure of each of several runs, read from as few of their tables as it needs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgesim.analysis.measures import NAMES, SOURCES, TO_STAY, TO_TARGET, Measures, own_metrics, why_without
from edgesim.analysis.metrics import FINAL_EVALUATIONS
from edgesim.analysis.participation import BY_CLASS
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.static_pairs import pairs
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import did_you_mean

COLUMNS = ("train_loss", "test_loss", "macro_f1")
"""Columns of ``rounds`` that may be named beside the measures of a summary; so may rows of ``metrics`` without keys."""
_NAMED = 3
_IDP = "idp_points"


def outcomes(runs: Sequence[RunFolder], names: Sequence[str], target: float | None) -> dict[Path, Measures]:
    """The named measures of every run, by its folder; of a run that never reached the target with ``NAME_bound``.

    Static runs, to which IDP compares, have no IDP themselves, and lack nothing.

    Names are those of a summary's columns, forgetting of single classes and a config's own metrics among them, of
    `COLUMNS`, and of rows of ``metrics`` without keys: of the latter two the mean over the last five rounds that have
    them.

    Raises `EdgesimError` for a measure that no run has, or that some lack, and for one to a target without a target.
    """
    if target is None and (wanting := [name for name in names if name in TO_TARGET + TO_STAY]):
        raise EdgesimError(f"metric {wanting[0]}: needs a target accuracy; give a target, such as 0.75")
    of: dict[Path, Measures] = {run.folder: {} for run in runs}
    paired = pairs(runs)[0] if _IDP in names else []
    of |= {pair.run.folder: {_IDP: pair.idp_points} for pair in paired}
    static = {pair.static.folder for pair in paired}
    for run in runs:
        of[run.folder] |= outcome(run, names, target)
    for name in names:
        lacking = [run for run in runs if not {name, f"{name}_bound"} & of[run.folder].keys()]
        lacking = [run for run in lacking if name != _IDP or run.folder not in static]
        if not lacking:
            continue
        reason = f" ({why})" if (why := why_without(lacking[0], name)) else ""
        if len(lacking) == len(runs):
            others = dict.fromkeys([*NAMES, *_rows(runs[0])])
            hint = "" if name in NAMES else did_you_mean(name, others) or f"; known: {', '.join(others)}"
            raise EdgesimError(f"metric {name}: no run has it{reason}{hint}")
        first = ", ".join(str(run.folder) for run in lacking[:_NAMED])
        more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
        raise EdgesimError(f"metric {name}: null in {len(lacking)} of {len(runs)} runs{reason}: {first}{more}")
    return of


def outcome(run: RunFolder, names: Sequence[str], target: float | None) -> Measures:
    """Values of the named measures that a run has, by name as in `outcomes`.

    Each group of them is worked out only if one of it is asked for. Raises `EdgesimError` for a target that is not
    above the run's start accuracy, where one of its measures is asked for.
    """
    wanted = set(names)
    by_class = any(name.startswith(BY_CLASS) for name in names)
    values: Measures = {}
    for group, source in SOURCES.items():
        if wanted & set(group) or (by_class and "forgetting_points" in group):
            values |= source(run, target)
    others = wanted - set(NAMES) - values.keys()
    rows = _rows(run) if others else {}
    values |= {name: rows[name] for name in others if name in rows}
    bounds = {f"{name}_bound" for name in wanted}
    return {name: value for name, value in values.items() if name in wanted | bounds and not np.isnan(value)}


def _rows(run: RunFolder) -> dict[str, float]:
    """Mean over the last rounds with a value, of `COLUMNS` and of each row of ``metrics`` without a key, by name."""
    metrics = run.metrics[(run.metrics["key"] == "") & (run.metrics["round"] > 0)].sort_values("round", kind="stable")
    series = {str(name): rows["value"] for name, rows in metrics.groupby("name")}
    series |= {name: run.rounds.sort_values("round")[name].dropna() for name in COLUMNS}
    means = {name: float(rows.tail(FINAL_EVALUATIONS).mean()) for name, rows in series.items() if len(rows)}
    return means | own_metrics(run)
