"""Time to deal 60,000 samples of ten classes; the yardstick is one shuffle and split of the same set."""

import numpy as np
import pytest
from sizes import size

from edgesim.learning.partitions import PARTITIONS
from edgesim.learning.partitions.dealing import hands
from edgesim.streams import Streams

LABELS = np.tile(np.arange(10), size(6000, 60))


@pytest.mark.parametrize("devices", size([1_000, 10_000], [10, 20]))
@pytest.mark.parametrize("name", [*(name for name in PARTITIONS if name != "listed"), "yardstick"])
def test_dealing(benchmark, name, devices):
    if name == "yardstick":
        owner = np.arange(len(LABELS)) % devices

        def deal():
            return [hands(np.random.default_rng(0).permutation(len(LABELS)), owner, devices)]

    else:
        law = PARTITIONS[name]()

        def deal():
            return law.divide(LABELS, 10, devices, law.default_samples, Streams(0))

    benchmark.group = f"{devices:,} devices"
    frames = benchmark.pedantic(deal, rounds=3)
    assert len(frames[0]) == devices
