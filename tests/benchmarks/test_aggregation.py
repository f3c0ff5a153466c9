"""What weighing many updates costs beside one weighted sum of the same matrix, of FedStg and AFL."""

import os

import numpy as np
import pytest
import torch
from sizes import least_cpu_s, size

from edgesim.config import AlgorithmConfig
from edgesim.learning.algorithms import make_halves
from edgesim.learning.algorithms.records import Arrivals, Sizes
from edgesim.learning.norms import norm
from edgesim.learning.torch_settings import reproducible
from edgesim.streams import Streams

CLASSES = 10
UPDATES, PARAMETERS, TURNS = size((500, 2_500_000, 5), (10, 1000, 1))


@pytest.fixture(scope="module")
def updates():
    """[500, 2,500,000]: five gigabytes."""
    matrix = torch.empty(UPDATES, PARAMETERS)
    generator = torch.Generator().manual_seed(0)
    for row in matrix:
        row.normal_(0, 1e-3, generator=generator)
    return matrix


def arrivals(updates):
    random = np.random.default_rng(0)
    ids, counts = np.arange(UPDATES), random.integers(0, 60, (UPDATES, CLASSES)) * (random.random((UPDATES, 10)) < 0.5)
    samples = counts.sum(axis=1)
    return Arrivals(
        ids=ids,
        samples=samples,
        round=1,
        began_in=np.ones(UPDATES, dtype=np.int64),
        staleness=np.zeros(UPDATES, dtype=np.int64),
        age_weight=np.ones(UPDATES),
        picked=np.ones(UPDATES, dtype=bool),
        lr=np.full(UPDATES, 0.1),
        began=ids,
        all_samples=samples,
        class_counts=counts,
        round_lr=0.1,
        updates=updates,
    )


@pytest.mark.parametrize(
    ("name", "measures_norms", "aim"), [("fedstg", False, 2.5), ("afl", True, 2.5), ("afl", False, 1.5)]
)
def test_aggregating_500_updates_beside_one_weighted_sum(benchmark, updates, name, measures_norms, aim):
    """Aims: 2.5 times, and 1.5 times where the lengths come with the updates."""
    sizes = Sizes(32.0 * PARAMETERS, PARAMETERS, UPDATES, CLASSES)
    server = make_halves(AlgorithmConfig(name=name), sizes, Streams(0)).server
    rows, known = arrivals(updates), np.array([norm(row) for row in updates])
    state = server.start(updates.new_zeros(PARAMETERS), None)
    shares = updates.new_full((UPDATES,), 1 / UPDATES)

    def aggregate() -> None:
        norms = np.array([norm(row) for row in updates]) if measures_norms else known
        arrived = Arrivals(**vars(rows) | {"norms": norms})
        server.merge(state, arrived, server.weigh(arrived), None)

    with reproducible(updates.device):
        contenders = {"sum": lambda: shares @ updates, "aggregation": aggregate}
        least = benchmark.pedantic(least_cpu_s, args=(contenders, TURNS), rounds=1)
    ratio = least["aggregation"] / least["sum"]
    benchmark.extra_info |= {"ratio": ratio, "aim": aim, "load_average": os.getloadavg()[0], **least}
    print(f"\n{name}: {1e3 * least['aggregation']:.0f} ms, {ratio:.2f} sums of {1e3 * least['sum']:.0f} ms (aim {aim})")
