"""The class mix of a million devices at one instant; the yardstick is the draw of as many numbers per device.

Aim: under 600 ms, where the yardstick takes some 250 ms.
"""

import numpy as np
import pytest
from sizes import size

from edgesim.config_file import parse
from edgesim.learning.datasets import Dataset
from edgesim.learning.drift import make_law, resolve_data
from edgesim.learning.drift.law import Setting, When
from edgesim.streams import Streams

DEVICES, CLASSES = size(1_000_000, 1000), 10
EVEN, FIRST = [0.1] * CLASSES, [0.5, 0.5] + [0.0] * (CLASSES - 2)
LAWS = {
    "rotation": {"law": "rotation"},
    "swap": {"law": "swap", "t_s": 1e6, "before": [EVEN, FIRST], "after": [FIRST, EVEN]},
    "gradual": {"law": "gradual", "start_s": 0.0, "end_s": 1e6, "before": [EVEN, FIRST], "after": [FIRST, EVEN]},
    "recurring": {"law": "recurring", "mixes": [[EVEN], [FIRST]], "durations_s": [1e3, 1e3]},
    # A thousandth of a sample at each device from one instant to the next.
    "arrival": {"law": "arrival", "rate_per_s": 1e-3},
}


@pytest.mark.parametrize("name", [*LAWS, "yardstick"])
def test_the_mix_of_a_million_devices(benchmark, name):
    numbers = iter(range(1, 1_000))
    if name == "yardstick":
        streams, devices = Streams(0), np.arange(DEVICES)
        counts = benchmark.pedantic(lambda: streams.exponential("x", devices, next(numbers), CLASSES), rounds=5)
        assert counts.shape == (DEVICES, CLASSES)
        return
    config = parse(
        {"rounds": 1_000, "devices": {"count": DEVICES}, "drift": LAWS[name], "learning": {"pretrain": True}}, "test"
    ).resolved()
    config = config.model_copy(update={"data": resolve_data(config)})
    labels = np.tile(np.arange(CLASSES), 6_000)
    dataset = Dataset("labels", labels, labels, CLASSES, (1, 1, 1), lambda: (labels, labels))
    drift = make_law(config.drift).make(Setting(config, dataset, np.arange(len(labels)), Streams(0)))
    drift.deal(drift.phase(When(0, 1, 0.0)))

    def deal():
        number = next(numbers)
        held = drift.deal(drift.phase(When(number, 1, float(number))))
        # As all laws deal out to those devices that are asked about.
        np.asarray(held.sizes)
        return held

    held = benchmark.pedantic(deal, rounds=5)
    assert held.class_counts.shape == (DEVICES, CLASSES)
    assert len(held.samples_of(DEVICES - 1)) == held.sizes[-1] > 0
