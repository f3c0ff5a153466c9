"""A study of FedStg and its baselines beside what its paper reports (SAC 2026, tables 1 and 2 and figure 1)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edgesim.analysis import metrics
from edgesim.analysis.energy_use import energy_j
from edgesim.analysis.runs import Run, read_study
from edgesim.analysis.statistics import mean_interval


class Published(NamedTuple):
    """What the paper reports of a method: one run, without seeds; NaN where it says nothing."""

    final_percent: float = np.nan
    """Test accuracy after round 100."""
    peak_percent: float = np.nan
    """The best test accuracy of any round."""
    peak_round: float = np.nan


CIFAR_10 = {
    "fedstg": Published(87.53, 87.53, 100),
    "fedavg": Published(82.60),
    "fedprox": Published(82.74),
    "feddyn": Published(80.92),
    "fedstg-no-rotation": Published(peak_percent=88.93, peak_round=100),
    "fedstg-all-join": Published(peak_percent=85.19, peak_round=92),
    "fedstg-every-round": Published(peak_percent=86.86, peak_round=83),
}
"""Tables 1 and 2. The log of its public program has 86.14 at round 98 as its best, 82.38 at round 100, and 72 rounds
that aggregated."""
CIFAR_100 = {
    "fedstg": Published(64.78, peak_round=94),
    "fedavg": Published(64.48, peak_round=100),
    "feddyn": Published(54.86, peak_round=44),
    "fedprox": Published(57.41, peak_round=16),
}
"""The paper calls the round that of convergence."""

MEASURES = ("final_percent", "peak_percent", "peak_round", "merged", "trained", "uploads", "gbit_up", "gbit_down", "kj")


def beside_fedstg(study_folder: Path) -> pd.DataFrame:
    """One row per combination of a study's knobs that has a finished run; raises `EdgesimError`.

    Among the study's knobs are ``method`` and ``dataset``. Columns: the knobs; ``seeds``; for each of `MEASURES` its
    mean over seeds with ``_low`` and ``_high`` (95 % t interval) and, of those of `Published`, with ``_paper`` the
    number for CIFAR-100 where the runs are on it, for CIFAR-10 else.
    """
    study = read_study(study_folder)
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in study.finished:
        groups.setdefault(tuple(run.knobs.get(name) for name in study.knob_names), []).append(run)
    rows = []
    for key, runs in groups.items():
        row: dict[str, Any] = dict(zip(study.knob_names, key, strict=True)) | {"seeds": len(runs)}
        measured = [_measures(run) for run in runs]
        for name in MEASURES:
            found = mean_interval([of[name] for of in measured])
            row |= {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}
        table = CIFAR_100 if row["dataset"] == "cifar100" else CIFAR_10
        paper = table.get(str(row["method"]), Published())
        rows.append(row | {f"{name}_paper": value for name, value in paper._asdict().items()})
    return pd.DataFrame(rows)


def _measures(run: Run) -> Mapping[str, float]:
    rounds, activities, of_rounds = run.rounds, run.activities, run.metrics
    tested = metrics.evaluations(rounds)
    best = tested.loc[tested["test_accuracy"].idxmax()]
    uploads = (activities["activity"] == "upload").to_numpy()
    return {
        "final_percent": 100 * float(tested["test_accuracy"].iloc[-1]),
        "peak_percent": 100 * float(best["test_accuracy"]),
        "peak_round": float(best["round"]),
        "merged": float(run.updates["round"].nunique()),
        "trained": float(rounds["selected"].sum()),
        "uploads": float(uploads.sum()),
        "gbit_up": metrics.bits_up(activities) / 1e9,
        "gbit_down": metrics.bits_down(rounds, of_rounds) / 1e9,
        "kj": energy_j(activities, of_rounds) / 1e3,
    }
