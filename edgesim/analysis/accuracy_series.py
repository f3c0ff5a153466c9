"""Series of test accuracy over rounds or simulated seconds, at the same places for several runs."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from edgesim.analysis.metrics import start_accuracy
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats

Over = Literal["rounds", "seconds"]


def accuracy_series(runs: Sequence[RunFolder], over: Over) -> tuple[Floats, Floats]:
    """Places [p], rounds or simulated seconds, and the accuracy of every run there [runs, p], its start accuracy at 0.

    Rounds are those that every run tested. Seconds are those of all tests, as far as every run got; at each a run has
    the accuracy of its last test.
    """
    paths = [_path(run, over) for run in runs]
    if over == "rounds":
        places = paths[0][0]
        for other, _ in paths[1:]:
            places = np.intersect1d(places, other)
        return places, np.stack([values[np.searchsorted(at, places)] for at, values in paths])
    first, last = max(at[0] for at, _ in paths), min(at[-1] for at, _ in paths)
    places = np.unique(np.concatenate([at for at, _ in paths]))
    places = places[(places >= first) & (places <= last)]
    return places, np.stack([values[np.searchsorted(at, places, side="right") - 1] for at, values in paths])


def _path(run: RunFolder, over: Over) -> tuple[Floats, Floats]:
    tests = run.tests.drop_duplicates("round") if over == "rounds" else run.tests
    at = tests["round" if over == "rounds" else "t_s"].to_numpy(dtype=np.float64)
    values = tests["accuracy"].to_numpy(dtype=np.float64)
    start = start_accuracy(run.metrics)
    if start is None:
        return at, values
    return np.concatenate([[0.0], at]), np.concatenate([[start], values])
