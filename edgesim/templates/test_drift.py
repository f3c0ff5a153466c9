"""Tests of the drift law."""

import numpy as np

from edgesim import parse
from edgesim.learning.drift.law import When
from edgesim.learning.federation import make_federation
from edgesim.simulation.complete import complete
from edgesim.streams import Streams
from edgesim.templates.drift import Seasons

CONFIG = {
    "rounds": 40,
    "devices": {"count": 4},
    "data": {"samples_per_device": 30},
    "learning": {"pretrain": True},
    "drift": {"law": f"{Seasons.__module__}.{Seasons.__name__}", "every": 10},
}


def test_three_classes_move_on_by_one_after_ten_rounds() -> None:
    """Classes 0 to 2 in rounds 1 to 10, 1 to 3 in rounds 11 to 20, and so on."""
    drift = make_federation(complete(parse(CONFIG, "test")), Streams(0)).drift
    for round, first in ((1, 0), (10, 0), (11, 1), (40, 3)):
        counts = drift.at(When(round, 1, 0.0)).class_counts
        assert np.flatnonzero(counts[0]).tolist() == [first, first + 1, first + 2]
        assert (counts.sum(axis=1) == 30).all()
