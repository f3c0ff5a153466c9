"""Tests of the protocol in runs without training."""

from pathlib import Path
from typing import Any

import edgesim
from edgesim.templates.protocol import EnoughArrived

CONFIG: dict[str, Any] = {
    "rounds": 6,
    "devices": {"count": 8},
    "data": {"dataset": "none", "partition": "fedteddi"},
    "learning": {"training": "none", "pretrain": True},
    "round": {"admission": "count", "count": 5, "allocator": "equal_share", "payload_bits": 1e5, "tmax_s": 60.0},
}


def play(folder: Path, **round: object) -> edgesim.Run:
    """A run of the config with other keys of ``[round]``."""
    return edgesim.run(CONFIG | {"round": CONFIG["round"] | round}, folder)


def test_a_round_closes_at_the_third_of_five_arrivals(tmp_path: Path) -> None:
    """Long before the deadline."""
    rounds = play(tmp_path / "run", protocol=f"{EnoughArrived.__module__}.{EnoughArrived.__name__}").rounds
    assert rounds["arrived"].tolist() == [3] * 6
    assert rounds["late"].tolist() == [2] * 6
    assert (rounds["t_end_s"] - rounds["t_start_s"]).max() < 60


def test_with_a_share_of_1_rounds_are_synchronous(tmp_path: Path) -> None:
    """All arrive, and the last arrival closes the round."""
    path, options = f"{EnoughArrived.__module__}.{EnoughArrived.__name__}", {"share": 1.0}
    mine = play(tmp_path / "mine", protocol=path, protocol_options=options).rounds
    assert mine["t_end_s"].tolist() == play(tmp_path / "theirs").rounds["t_end_s"].tolist()
