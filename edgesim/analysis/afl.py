"""A study of AFL beside the numbers of its paper: accuracies, convergence (table 3) and communication (table 4).

The paper names none of its data sets, so that its numbers are no target for any other.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from edgesim.analysis.differences import summarise_differences
from edgesim.analysis.measures import Measures, measure
from edgesim.analysis.pairing import comparisons, pairings
from edgesim.analysis.runs import read_study
from edgesim.analysis.statistics import mean_interval

MEASURES = (
    "final_accuracy",
    "final_macro_f1",
    "final_roc_auc",
    "rounds_to_own_peak",
    "rounds_to_target",
    "simulated_s",
    "gigabytes",
)
"""What is compared: shares, rounds, seconds, and the whole run's bytes in both directions."""
PUBLISHED: dict[tuple[str, str], Measures] = {
    ("iid", "centralised"): {"final_accuracy": 0.924, "final_macro_f1": 0.918, "final_roc_auc": 0.94},
    ("iid", "fedavg-50"): {
        "final_accuracy": 0.912,
        "final_macro_f1": 0.905,
        "final_roc_auc": 0.93,
        "rounds_to_target": 145,
        "gigabytes": 14.8,
    },
    ("iid", "afl"): {
        "final_accuracy": 0.918,
        "final_macro_f1": 0.912,
        "final_roc_auc": 0.94,
        "rounds_to_target": 118,
        "gigabytes": 10.6,
    },
    ("moderate", "fedavg-50"): {"final_accuracy": 0.865, "final_macro_f1": 0.839, "final_roc_auc": 0.89},
    ("moderate", "afl"): {"final_accuracy": 0.888, "final_macro_f1": 0.87, "final_roc_auc": 0.91},
    ("high", "fedavg-50"): {
        "final_accuracy": 0.794,
        "final_macro_f1": 0.756,
        "final_roc_auc": 0.83,
        "rounds_to_own_peak": 210,
    },
    ("high", "afl"): {
        "final_accuracy": 0.847,
        "final_macro_f1": 0.821,
        "final_roc_auc": 0.88,
        "rounds_to_own_peak": 162,
    },
}
"""By skew and method. Table 4 has rounds to 90 % and bytes of an unnamed split: that of the equal mixes, since under
skew FedAvg never gets there."""


class BesideAfl(NamedTuple):
    """What came of a study of AFL."""

    means: pd.DataFrame
    """One row per skew and method: ``skew``, ``method``, ``seeds``, and for each of `MEASURES` its mean with ``_low``
    and ``_high`` (95 % t interval) and ``_paper``. Rounds to the target are of the runs that reached it; where
    ``not_reached`` is not 0, ``rounds_to_target_bound`` is below the mean over all runs."""
    differences: pd.DataFrame
    """Every other method against the reference under the same skew, in each of `MEASURES`, all judged together: a table
    as from `summarise_differences`."""


def beside_afl(study_folder: Path, reference: str) -> BesideAfl:
    """Of a study with the knobs ``skew`` and ``method``, against the method ``reference``; raises `EdgesimError`."""
    study = read_study(study_folder)
    of = {run.folder: measure(run, study.target) for run in study.finished}
    for found in of.values():
        found["gigabytes"] = (found["bits_up"] + found["bits_down"]) / 8e9
    groups: dict[tuple[str, str], list[Measures]] = {}
    for run in study.finished:
        groups.setdefault((str(run.knobs["skew"]), str(run.knobs["method"])), []).append(of[run.folder])
    rows = []
    for (skew, method), group in groups.items():
        row: dict[str, object] = {"skew": skew, "method": method, "seeds": len(group)}
        row["not_reached"] = sum(found.get("reached") == 0 for found in group)
        row |= {"rounds_to_target_bound": _bound(group) if row["not_reached"] else np.nan}
        for name in MEASURES:
            ends = mean_interval([found[name] for found in group if name in found])
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            row[f"{name}_paper"] = PUBLISHED.get((skew, method), {}).get(name, np.nan)
        rows.append(row)
    compared = comparisons(pairings(study.finished, "method", reference), MEASURES, lambda run: of[run.folder])
    return BesideAfl(pd.DataFrame(rows), summarise_differences(compared))


def _bound(group: Sequence[Measures]) -> float:
    """Mean rounds to the target, in which a run that never reached it counts with what it had taken."""
    name = "rounds_to_target"
    return float(np.mean([found.get(name, found.get(f"{name}_bound", np.nan)) for found in group]))
