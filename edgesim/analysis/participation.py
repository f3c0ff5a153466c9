"""Accuracy over rounds while devices come and go: WE, IDP, ID and forgetting.

Accuracies are in %, one for each round from 1 to the last, T; the test before training is in none of the measures.
Definitions: the three metrics of the DPFL benchmark (NYCU-PAIR-Labs) for dynamic participation; window
and degree of ID, which it leaves open, and forgetting are edgesim's choice.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from edgesim.analysis.metrics import evaluations, like_the_last
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError

WE_ROUNDS = 5
"""Rounds whose accuracies WE averages (omega)."""
ID_DEGREE = 1
"""Degree of the polynomial about which ID measures: a straight line."""
BY_CLASS = "forgetting_class_"
"""Beginning of the names of the forgetting of single classes."""
_ID_WINDOW = (50, 100)


class Windowed(NamedTuple):
    """Mean and variance over the last rounds, each [T]: value t - 1 is that of round t."""

    mean: Floats
    variance: Floats
    """Sum of the squared deviations over their number, in squared percentage points."""


def windowed(accuracies: ArrayLike, rounds: int = WE_ROUNDS) -> Windowed:
    """WE of each round: mean and variance of the accuracies [T] of the last ``rounds`` rounds, of all if fewer."""
    psi = np.asarray(accuracies, dtype=np.float64)
    windows = [psi[max(0, last - rounds) : last] for last in range(1, psi.size + 1)]
    return Windowed(np.array([part.mean() for part in windows]), np.array([part.var() for part in windows]))


def impact(static: ArrayLike, dynamic: ArrayLike) -> float:
    """IDP: mean over rounds of the static run's accuracy [T] minus the dynamic run's [T], in percentage points.

    Signed: positive where dynamic participation costs accuracy. Raises `EdgesimError` for unequal numbers of rounds.
    """
    still, moving = np.asarray(static, dtype=np.float64), np.asarray(dynamic, dtype=np.float64)
    if still.size != moving.size:
        raise EdgesimError(f"IDP needs runs of equally many rounds (got {moving.size} against {still.size})")
    return float(np.mean(still - moving))


def instability_window(rounds: int) -> tuple[int, int]:
    """The rounds that ID looks at by default: after the first number, up to and with the second.

    (50, 100] as far as the run goes, else its second half.
    """
    return _ID_WINDOW if rounds >= _ID_WINDOW[1] else (rounds // 2, rounds)


def instability(accuracies: ArrayLike, window: tuple[int, int] | None = None, degree: int = ID_DEGREE) -> float:
    """ID: mean distance of the accuracies [T] from the least-squares polynomial through them, in percentage points.

    ``window`` as from `instability_window`, which is the default. Raises `EdgesimError` unless the window lies within
    the rounds and has at least ``degree`` + 2 of them.

    It has twelve decimals: what rounding leaves of equal distances would count as a difference between runs.
    """
    psi = np.asarray(accuracies, dtype=np.float64)
    after, last = instability_window(psi.size) if window is None else window
    if not 0 <= after <= last <= psi.size or last - after < degree + 2:
        raise EdgesimError(
            f"ID of degree {degree} needs a window of at least {degree + 2} of the {psi.size} rounds (got rounds "
            f"{after + 1} to {last})"
        )
    part, rounds = psi[after:last], np.arange(after + 1, last + 1)
    distances = np.abs(np.polynomial.Polynomial.fit(rounds, part, degree)(rounds) - part)
    return round(float(distances.mean()), 12)


def forgetting(by_class: ArrayLike) -> Floats:
    """Forgetting of each class [C]: its best accuracy over rounds 1 to T - 1 minus that of round T, in points.

    ``by_class`` is [T, C]; negative for a class that is at its best in the last round. Raises `EdgesimError` for T = 1.
    """
    psi = np.asarray(by_class, dtype=np.float64)
    if len(psi) < 2:
        raise EdgesimError(f"forgetting needs at least 2 rounds (got {len(psi)})")
    return np.asarray(psi[:-1].max(axis=0) - psi[-1])


def why_undefined(run: RunFolder) -> str:
    """Reason why WE, IDP, ID and forgetting of a run are undefined; empty if they are defined."""
    tested, frames = run.rounds["test_accuracy"].notna(), run.rounds["frame"].nunique()
    if not tested.all():
        return f"{tested.sum()} of {len(tested)} rounds have a test, and each must have one (evaluation.every = 1)"
    return f"its rounds are of {frames} frames, whose tests differ" if frames > 1 else ""


def course(run: RunFolder) -> Floats:
    """Accuracies [T] of a run after each round, in %; raises `EdgesimError` where `why_undefined` says so."""
    if reason := why_undefined(run):
        raise EdgesimError(f"{run.folder}: WE, IDP, ID and forgetting are undefined: {reason}")
    return np.asarray(100 * run.rounds.sort_values("round")["test_accuracy"].to_numpy(np.float64))


def class_course(run: RunFolder) -> pd.DataFrame:
    """Accuracies of a run in %, a row for each round and a column for each class tested; raises as `course`."""
    rounds = len(course(run))
    rows = run.metrics[(run.metrics["name"] == "class_accuracy") & run.metrics["round"].isin(run.rounds["round"])]
    table = rows.pivot(index="round", columns="key", values="value").sort_index()
    if len(table) != rounds or table.isna().any(axis=None):
        raise EdgesimError(f"{run.folder}: metrics: expected class_accuracy of every class in each of {rounds} rounds")
    return 100 * table.astype(np.float64)


def course_measures(run: RunFolder) -> dict[str, float]:
    """Measures of one run by name, of its last round T; those that it does not have are absent.

    ``we_percent`` and ``we_variance`` (squared points); ``id_points`` with ``id_first`` and ``id_last``, the rounds of
    its window; ``forgetting_points``, the mean over classes, and ``forgetting_class_0`` and so on, of each class;
    ``best_accuracy`` (share) of all rounds with a test. Best accuracies are of tests `like_the_last` alone.
    """
    tested = evaluations(run.rounds)
    if tested.empty:
        return {}
    alike = like_the_last(tested, run.metrics)
    values = {"best_accuracy": float(alike["test_accuracy"].max())}
    if why_undefined(run):
        return values
    psi = course(run)
    we = windowed(psi)
    values |= {"we_percent": float(we.mean[-1]), "we_variance": float(we.variance[-1])}
    after, last = instability_window(psi.size)
    if last - after >= ID_DEGREE + 2:
        values |= {"id_points": instability(psi), "id_first": after + 1, "id_last": last}
    if len(alike) > 1 and (run.metrics["name"] == "class_accuracy").any():
        by_class = class_course(run).loc[alike["round"]]
        lost = forgetting(by_class)
        values["forgetting_points"] = float(lost.mean())
        values |= {f"{BY_CLASS}{label}": value for label, value in zip(by_class, lost.tolist(), strict=True)}
    return values


def forgetting_names(names: Iterable[str]) -> dict[str, str]:
    """Select the names of forgetting of single classes, each with its class, in ascending order of the classes."""
    labels = {name: name.removeprefix(BY_CLASS) for name in names if name.startswith(BY_CLASS)}
    labels = {name: label for name, label in labels.items() if label.isdecimal()}
    return dict(sorted(labels.items(), key=lambda item: int(item[1])))
