"""What benchmarks share: one run of each without times at the least size, and what policies decide on."""

from types import SimpleNamespace

import numpy as np
import pytest
from sizes import IS_LEAST, size

from edgesim.selection.view import RoundView
from edgesim.streams import Streams

DEVICES, CLASSES = size(1000, 40), 100


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """At the least size nothing is repeated: pytest-benchmark calls each function once and keeps no times."""
    if IS_LEAST:
        config.option.benchmark_disable = True


@pytest.fixture(scope="session")
def view_of():
    """Makes what a policy sees of so many devices; fields may be other ones."""

    def make(devices, **fields):
        ids = np.arange(devices)
        usual = {"round": 1, "frame": 1, "round_in_frame": 1, "rounds_in_frame": 200, "t_s": 0.0, "tmax_s": 1.0}
        usual |= {"batch_size": 32, "ids": ids, "gain": np.ones(devices), "delay_s": np.full(devices, 0.1)}
        usual |= {"need_hz": np.ones(devices), "times_selected": np.zeros(devices, dtype=np.int64)}
        usual |= {"streams": Streams(0), "knowledge": SimpleNamespace(), "estimates": SimpleNamespace()}
        return RoundView(**usual | fields)

    return make


@pytest.fixture(scope="module")
def view(view_of):
    random = np.random.default_rng(7)
    counts = random.multinomial(300, random.dirichlet(np.full(CLASSES, 0.1), DEVICES))
    previous = random.permutation(counts)
    knowledge = SimpleNamespace(
        class_counts=lambda ids, source: counts[ids],
        previous_class_counts=lambda ids: previous[ids],
        global_shares=lambda source: counts.sum(axis=0) / counts.sum(),
        # Noise so strong that the objective never stops the greedy: every device is offered.
        gradient_deviations=lambda ids: np.full(len(ids), 1e9),
    )
    drawn = {"gain": random.random(DEVICES), "need_hz": random.random(DEVICES), "samples": counts.sum(axis=1)}
    return view_of(DEVICES, **drawn, work_samples=np.full(DEVICES, 160), knowledge=knowledge)
