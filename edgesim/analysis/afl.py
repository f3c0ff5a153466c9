"""A study of AFL beside the numbers of its paper: accuracies, convergence (table 3) and communication (table 4).

The paper names none of its data sets, so that its numbers are no target for any other.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from edgesim.analysis.runs import read_study
from edgesim.analysis.statistics import holm, mean_interval, pair_by_seed, paired_t_p
from edgesim.analysis.summary import Measures, measure

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


def beside_afl(study_folder: Path, reference: str) -> pd.DataFrame:
    """One row per skew and method of a study with these two knobs; raises `EdgesimError`.

    Columns: ``skew``, ``method``, ``seeds``; for each of `MEASURES` its mean with ``_low`` and ``_high`` (95 % t
    interval), ``_paper``, and the difference to the method ``reference`` under the same skew, seed by seed:
    ``_difference`` with ``_difference_low`` and ``_difference_high``, ``_pairs`` and ``_p_holm`` (paired t test,
    corrected for all rows). Rounds to the target are of the runs that reached it, ``reached`` counts these.
    """
    study = read_study(study_folder)
    groups: dict[tuple[str, str], dict[int, Measures]] = {}
    for run in study.finished:
        found = measure(run, study.target)
        found["gigabytes"] = (found["bits_up"] + found["bits_down"]) / 8e9
        groups.setdefault((str(run.knobs["skew"]), str(run.knobs["method"])), {})[run.seed] = found
    rows = []
    for (skew, method), group in groups.items():
        row: dict[str, object] = {"skew": skew, "method": method, "seeds": len(group)}
        row["reached"] = sum(values.get("reached") == 1 for values in group.values())
        others = groups.get((skew, reference), {}) if method != reference else {}
        for name in MEASURES:
            mine, theirs = _of(group, name), _of(others, name)
            first, second = pair_by_seed(mine, theirs)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), mean_interval([*mine.values()]), strict=True))
            row[f"{name}_paper"] = PUBLISHED.get((skew, method), {}).get(name, np.nan)
            ends = (f"{name}_difference", f"{name}_difference_low", f"{name}_difference_high")
            row |= dict(zip(ends, mean_interval(first - second), strict=True))
            row |= {f"{name}_pairs": len(first), f"{name}_p_holm": paired_t_p(first, second)}
        rows.append(row)
    table = pd.DataFrame(rows)
    for name in MEASURES:
        table[f"{name}_p_holm"] = holm(table[f"{name}_p_holm"])
    return table


def _of(group: Mapping[int, Measures], name: str) -> dict[int, float]:
    return {seed: values[name] for seed, values in group.items() if name in values}
