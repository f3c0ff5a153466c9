"""Speed and smoothness of a run's learning by its own peak, and growth of its time with the number of devices."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from edgesim.analysis.metrics import FINAL_EVALUATIONS, Reached, bits_down, evaluations, like_the_last
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError

OF_PEAK = 0.95
OF_ONE_FRAME = ("best_round", "rounds_to_own_peak", "seconds_to_own_peak", "loss_roughness")
"""Measures that need tests that are alike."""
MEASURES = ("final_macro_f1", "final_roc_auc", *OF_ONE_FRAME, "update_cosine", "bits_down")
"""Names of `convergence_measures`."""
_DEVICE_KNOBS = ("devices", "clients")


def to_own_peak(tests: pd.DataFrame, share: float = OF_PEAK) -> Reached:
    """The first test at or above a share of the run's best accuracy; ``tests`` as from `metrics.tests`, at least one.

    It rewards a low peak: beside it belong the rounds to a target that all runs have in common (`metrics.to_target`).
    """
    accuracy = tests["accuracy"].to_numpy()
    row = tests.iloc[int(np.argmax(accuracy >= share * accuracy.max()))]
    return Reached(float(row["round"]), float(row["t_s"]), True)


def roughness(losses: Floats) -> float:
    """Mean |l_(t+1) - 2 l_t + l_(t-1)| of test losses in order, [n]; NaN of fewer than three."""
    return float(np.abs(np.diff(losses, 2)).mean()) if len(losses) > 2 else np.nan


class Growth(NamedTuple):
    """Exponent of a power law, with the ends of its 95 % t interval."""

    exponent: float
    low: float
    high: float


def growth(devices: Floats, seconds: Floats) -> Growth:
    """The b of seconds = a devices^b, [n] each: least squares on logarithms.

    Of two numbers of devices alone the interval is NaN. Raises `EdgesimError` for fewer than two, and for values that
    are not above zero.
    """
    devices, seconds = np.asarray(devices, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    if not (np.all(devices > 0) and np.all(seconds > 0)):
        raise EdgesimError("growth: expected numbers of devices and seconds above 0")
    if len(np.unique(devices)) < 2:
        raise EdgesimError("growth: expected runs of two numbers of devices or more")
    fit = scipy.stats.linregress(np.log(devices), np.log(seconds))
    freedom = len(devices) - 2
    reach = float(scipy.stats.t.ppf(0.975, freedom)) * float(fit.stderr) if freedom else np.nan
    return Growth(float(fit.slope), float(fit.slope) - reach, float(fit.slope) + reach)


def why_without_peak(run: RunFolder) -> str:
    """Reason why a tested run has none of `OF_ONE_FRAME`; empty if it has them."""
    frames = evaluations(run.rounds)["frame"].nunique()
    return f"its tests are of {frames} frames, and not alike" if frames > 1 else ""


def convergence_measures(run: RunFolder) -> dict[str, float]:
    """Measures of `MEASURES` that a run has, by name.

    Macro F1 and ROC-AUC (share) are means of the last five tests, as the final accuracy; ``best_round`` is the first
    with the best accuracy; rounds and seconds are those `to_own_peak`, all three of tests `like_the_last` alone; the
    cosine is the mean over the run's models; ``bits_down`` as `edgesim.analysis.metrics`. Runs of several
    frames, whose tests differ, have none of `OF_ONE_FRAME`.
    """
    values = {"bits_down": bits_down(run.rounds, run.metrics)}
    tested = evaluations(run.rounds)
    if tested.empty:
        return values
    values["final_macro_f1"] = float(tested["macro_f1"].tail(FINAL_EVALUATIONS).mean())
    of_metrics = {name: run.metrics.loc[run.metrics["name"] == name, "value"] for name in ("roc_auc", "update_cosine")}
    values["final_roc_auc"] = float(of_metrics["roc_auc"].tail(FINAL_EVALUATIONS).mean())
    values["update_cosine"] = float(of_metrics["update_cosine"].mean())
    if not why_without_peak(run):
        peak = to_own_peak(like_the_last(run.tests, run.metrics))
        best = like_the_last(tested, run.metrics)["test_accuracy"].idxmax()
        values["best_round"] = float(tested.loc[best, "round"])
        values |= {"rounds_to_own_peak": peak.round, "seconds_to_own_peak": peak.t_s}
        values["loss_roughness"] = roughness(tested["test_loss"].to_numpy(np.float64))
    return {name: value for name, value in values.items() if not np.isnan(value)}


def _simulated_s(run: RunFolder) -> float:
    return float((run.rounds["t_end_s"] - run.rounds["t_start_s"]).mean())


def _wall_s(run: RunFolder) -> float:
    timing = run.timing
    return float(timing.loc[timing["part"] == "round", "wall_s"].median())


CLOCKS: dict[str, Callable[[RunFolder], float]] = {"simulated": _simulated_s, "wall": _wall_s}
"""The time of a run's round in seconds: the mean simulated and the median wall time."""


def growth_table(runs: Sequence[RunFolder]) -> pd.DataFrame:
    """Growth of a round's time with the number of devices: a row per combination of all other knobs.

    Columns: those knobs; ``runs``; ``fewest`` and ``most`` devices; the exponents ``simulated``, of the mean simulated
    seconds of a round, and ``wall``, of its median wall seconds, with ``_low`` and ``_high`` (`growth`; NaN where a
    round takes no time). Wall time means little where runs shared their cores. Empty unless runs that agree in all
    other knobs, but for the seed, differ in their number of devices (`_DEVICE_KNOBS`).
    """
    groups: dict[tuple[object, ...], list[RunFolder]] = {}
    names = [name for name in dict.fromkeys(name for run in runs for name in run.knobs) if name not in _DEVICE_KNOBS]
    for run in runs:
        groups.setdefault(tuple(run.knobs.get(name) for name in names), []).append(run)
    rows = []
    for key, group in groups.items():
        if len({tuple(run.knobs.get(name) for name in _DEVICE_KNOBS) for run in group}) < 2:
            continue
        devices = np.array([run.device_count for run in group], dtype=np.float64)
        row: dict[str, object] = dict(zip(names, key, strict=True))
        row |= {"runs": len(group), "fewest": int(devices.min()), "most": int(devices.max())}
        for name, seconds in CLOCKS.items():
            times_s = np.array([seconds(run) for run in group])
            fit = growth(devices, times_s) if (times_s > 0).all() else Growth(np.nan, np.nan, np.nan)
            row |= {name: fit.exponent, f"{name}_low": fit.low, f"{name}_high": fit.high}
        rows.append(row)
    return pd.DataFrame(rows)
