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
        found.append(Difference(run, {name: value for name, value in values.items() if not np.isnan(value)}))
    return found


def _pairs(run: Run, partner: Run, knob: str) -> bool:
    shared = {name: value for name, value in partner.knobs.items() if name != knob}
    return run.seed == partner.seed and all(run.knobs.get(name) == value for name, value in shared.items())


def summarise_differences(found: list[Difference]) -> pd.DataFrame:
    """One row per combination of knobs: ``pairs`` of seeds, and each measure's mean with its 95 % t interval.

    Columns of a measure: its name, and that with ``_low`` and ``_high``.
    """
    names = list(dict.fromkeys(name for one in found for name in one.run.knobs))
    groups: dict[tuple[object, ...], list[Measures]] = {}
    for one in found:
        groups.setdefault(tuple(one.run.knobs.get(name) for name in names), []).append(one.values)
    rows = []
    for key, group in groups.items():
        row: dict[str, object] = dict(zip(names, key, strict=True)) | {"pairs": len(group)}
        for name in MEASURES:
            if any(name in values for values in group):
                mean, low, high = mean_interval([values[name] for values in group if name in values])
                row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)
