"""What one value of a knob is worth against another, seed by seed."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from edgesim.analysis.runs import Run, read_study
from edgesim.analysis.statistics import mean_interval
from edgesim.analysis.summary import Measures, measure_rounds

MEASURES = ("scheduled", "arrived", "miss_rate", "seconds_to_target", "joules_to_target", "final_accuracy")


class Difference(NamedTuple):
    """One run, and by how much its measures exceed those of its partner."""

    run: Run
    values: Measures
    censored: bool
    """Whether one of the two never reached the target, so that it counts as one round more than it had."""


def differences(study_folder: Path, knob: str, reference: str | float) -> list[Difference]:
    """Every finished run against its partner, in the plan's order; those without a partner are left out.

    The partner is the finished run of the same seed whose ``knob`` is ``reference`` and whose every other knob the run
    shares; the run may have more knobs (a quantile that only one way of planning has). Raises `EdgesimError`.
    """
    study = read_study(study_folder)
    of = {run.folder: measure_rounds(run, study.target) for run in study.finished}
    partners = [run for run in study.finished if run.knobs.get(knob) == reference]
    found = []
    for run in study.finished:
        partner = next((other for other in partners if _pairs(run, other, knob)), None)
        if partner is None or run.knobs.get(knob) == reference:
            continue
        mine, theirs = of[run.folder], of[partner.folder]
        values = {name: mine[name] - theirs[name] for name in MEASURES if name in mine and name in theirs}
        known = {name: value for name, value in values.items() if not np.isnan(value)}
        found.append(Difference(run, known, mine.get("reached") == 0.0 or theirs.get("reached") == 0.0))
    return found


def _pairs(run: Run, partner: Run, knob: str) -> bool:
    shared = {name: value for name, value in partner.knobs.items() if name != knob}
    return run.seed == partner.seed and all(run.knobs.get(name) == value for name, value in shared.items())


def summarise_differences(found: list[Difference]) -> pd.DataFrame:
    """One row per combination of knobs: ``pairs`` of seeds, and each measure's mean with its 95 % t interval.

    ``never`` counts the pairs of which one run never reached the target. Columns of a measure: its name, and that with
    ``_low`` and ``_high``.
    """
    names = list(dict.fromkeys(name for one in found for name in one.run.knobs))
    pairs: dict[tuple[object, ...], list[Difference]] = {}
    for one in found:
        pairs.setdefault(tuple(one.run.knobs.get(name) for name in names), []).append(one)
    rows = []
    for key, of_key in pairs.items():
        group = [one.values for one in of_key]
        never = sum(one.censored for one in of_key)
        row: dict[str, object] = dict(zip(names, key, strict=True)) | {"pairs": len(group), "never": never}
        for name in MEASURES:
            if any(name in values for values in group):
                mean, low, high = mean_interval([values[name] for values in group if name in values])
                row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)
