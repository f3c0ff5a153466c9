"""Tests of the presence model."""

import numpy as np

from edgesim.streams import Streams
from edgesim.templates.presence import Shifts


def test_groups_take_turns_of_three_slots() -> None:
    """Devices 0 and 2 in slots 0 to 2, devices 1 and 3 in slots 3 to 5, and so on."""
    in_slot = Shifts(groups=2, length=3).law(4, Streams(0))
    ids = np.arange(4)
    there = [set(ids[in_slot(ids, np.full(4, slot))].tolist()) for slot in range(8)]
    assert there == [{0, 2}] * 3 + [{1, 3}] * 3 + [{0, 2}] * 2


def test_a_tenth_of_the_slots_is_missed() -> None:
    """Of 20,000 devices on duty 18,000 are there, up to chance."""
    ids = np.arange(20_000)
    in_slot = Shifts(groups=1, absence=0.1).law(len(ids), Streams(1))
    assert abs(in_slot(ids, np.zeros_like(ids)).mean() - 0.9) < 0.01
