"""Tests of the policy, in runs of simulated time alone."""

from pathlib import Path

import edgesim
from edgesim.base.saved import pack, unpack
from edgesim.templates.policy import LongestWait, LongestWaitOptions, LongestWaitState

CONFIG = {
    "rounds": 3,
    "devices": {"count": 6},
    "data": {"dataset": "none", "partition": "fedteddi"},
    "learning": {"training": "none", "pretrain": True},
    "round": {"admission": "count", "count": 2, "payload_bits": 1e5},
    "selection": {"policy": f"{LongestWait.__module__}.{LongestWait.__name__}"},
}


def test_every_device_has_its_turn_before_any_has_a_second_one(tmp_path: Path) -> None:
    """Six devices, two places: three rounds take each device once."""
    updates = edgesim.run(CONFIG, tmp_path / "run").updates
    assert [sorted(turn) for _, turn in updates.groupby("round")["device"]] == [[0, 1], [2, 3], [4, 5]]


def test_its_state_can_be_saved_and_restored() -> None:
    """`edgesim.base.saved` unpacks an equal state from what it packs."""
    policy = LongestWait(LongestWaitOptions(), 3, 10)
    policy.state.taken[1] = 7
    assert unpack(LongestWaitState, *pack(policy.state)).taken.tolist() == [0, 7, 0]
