"""Tests of the joining law, by hand and in a run."""

from pathlib import Path

import numpy as np

import edgesim
from edgesim.joining.law import Asked, Fleet
from edgesim.templates.joining import SlowOnesRest

CONFIG = {
    "rounds": 40,
    "devices": {"count": 10, "profile": "sample-phones"},
    "data": {"dataset": "none", "partition": "fedteddi"},
    "learning": {"training": "none", "pretrain": True},
    "round": {"payload_bits": 1e5, "tmax_s": 60.0},
    "joining": {"law": f"{SlowOnesRest.__module__}.{SlowOnesRest.__name__}", "least": 0.0},
}


def test_the_fastest_joins_always_and_the_slowest_as_seldom_as_it_may() -> None:
    """Times of 1, 2 and 3 s: chances 1, 0.6 and 0.2."""
    fleet = Fleet(np.array([3.0, 1.0, 2.0]), 10)
    asked = Asked(np.array([0, 1, 2]), 1, np.full(3, np.nan))
    assert np.allclose(SlowOnesRest(least=0.2).chances(asked, fleet), [0.2, 1.0, 0.6])


def test_in_a_run_the_slowest_never_joins(tmp_path: Path) -> None:
    """With a least chance of 0."""
    run = edgesim.run(CONFIG, tmp_path / "run")
    devices = run.devices.drop_duplicates("device").set_index("device")
    slow = devices["a_s"]
    joined = run.activities["device"].unique()
    assert slow.idxmax() not in joined
    assert slow.idxmin() in joined
