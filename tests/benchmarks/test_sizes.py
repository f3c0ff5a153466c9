"""What sizes that follow the channel cost: allocators beside equal finish, rounds beside rounds of fixed sizes.

All take turns in one process, whose processor time counts.
"""

from contextlib import ExitStack
from statistics import median

import numpy as np
import pytest
from sizes import cpu_s, least_cpu_s, size
from whole_runs import TIMED, merged

from edgesim.config_file import parse
from edgesim.folder.records import NoTables
from edgesim.radio.allocators import ALLOCATORS, Request, Sizes
from edgesim.radio.allocators.equal_finish import allocate as equal_finish
from edgesim.radio.link import ShannonLink
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation

TAKEN, TURNS = size((1000, 5), (5, 1))
DEVICES, UPLOADS = size((10_000, (30, 1_000)), (50, (30,)))
TURN, PAIRS = size((300, 25), (30, 1))
"""Uploads in a turn of a run, and turns of each pair of runs."""
BY_COUNT = {"admission": "count", "tmax_s": 6.0, "payload_bits": 17_881_664.0, "computes": "selected"}
EQUAL, FINISH, BITS = {"allocator": "equal_share"}, {"leftover": "equal_finish"}, {"allocator": "equal_bits"}
TOPK, QSGD, DEADLINE = {"codec": "topk"}, {"codec": "qsgd"}, {"close": "deadline"}
CASES = {
    "fit at start": ((TOPK, EQUAL), ({"size": "fit"}, EQUAL)),
    "fit at plan": ((TOPK, EQUAL), ({"size": "fit", "fit_at": "plan"}, EQUAL)),
    "equal_bits": ((TOPK, FINISH), ({"size": "fit"}, BITS)),
    "enumerative": ((TOPK | {"coding": "enumerative"}, EQUAL), ({"size": "fit"}, EQUAL)),
    "qsgd": ((QSGD, EQUAL), ({"size": "fit"}, EQUAL)),
    "least_error": ((QSGD, FINISH), ({"size": "fit"}, {"allocator": "least_error"})),
    "stream": ((TOPK | {"coding": "index"}, EQUAL | DEADLINE), ({"size": "stream", "ratio": 0.2}, EQUAL | DEADLINE)),
}
"""Sections ``[upload]`` and ``[round]`` of one size, what is added to the former, and the latter of sizes that follow
the channel."""


def request():
    """Quantised updates of 558,802 numbers that take a fifth of the band with the fewest bits."""
    rng, ids = np.random.default_rng(0), np.arange(TAKEN)
    rx_power_w, ready_s, link = 10 ** rng.uniform(-13, -11, TAKEN), rng.uniform(0, 0.5, TAKEN), ShannonLink(4e-21)

    def bits(s):
        return np.full(TAKEN, 558_802.0 * (2 * s).bit_length() + 34_944)

    need_hz = link.least_hz(ids, bits(1), ready_s, 1.0, rx_power_w, 0.0)
    sizes = Sizes(bits, rng.uniform(1, 2, TAKEN))
    return Request(ids, bits(1), ready_s, rx_power_w, need_hz, link, 0.0, float(5 * need_hz.sum()), 1.0, sizes)


@pytest.mark.parametrize("name", ["equal_bits", "least_error"])
def test_an_allocator_of_sizes_beside_equal_finish(benchmark, name):
    """Aim: under 20 times equal finish for 1,000 devices."""
    asked, allocate = request(), ALLOCATORS[name]().allocate
    assert allocate(asked).sum() <= asked.bandwidth_hz * (1 + 1e-9)
    ways = {"equal_finish": lambda: equal_finish(asked), name: lambda: allocate(asked)}
    least = benchmark.pedantic(least_cpu_s, args=(ways, TURNS), rounds=1)
    ratio = least[name] / max(least["equal_finish"], 1e-9)
    benchmark.extra_info |= {"ratio": ratio, **least}
    print(f"\n{name}: {1e3 * least[name]:.1f} ms, {ratio:.2f} times equal finish (aim 20)")


@pytest.mark.parametrize("uploads", UPLOADS)
@pytest.mark.parametrize("name", CASES)
def test_rounds_of_sizes_by_the_channel_beside_rounds_of_one_size(benchmark, uploads, name):
    """Aim: with ``fit`` at most 1.3 times the time of a round without, of 10,000 devices that are not trained.

    Each pair of turns has a ratio, of which the median counts.
    """
    (upload, fixed), (more, follows) = CASES[name]

    def begun(upload, knobs):
        values = {"rounds": 1_000_000, "devices": {"count": DEVICES}, "round": BY_COUNT | {"count": uploads} | knobs}
        values = merged(TIMED, values, {"upload": upload})
        run = contexts.enter_context(Simulation(complete(parse(values, "benchmark"))))
        run.make_server(NoTables())
        run.begin()
        run.advance()
        return run

    def round_s(run):
        rounds = -(-TURN // uploads)
        return cpu_s(lambda: [run.advance() for _ in range(rounds)]) / rounds

    with ExitStack() as contexts:
        runs = begun(upload, fixed), begun(upload | more, follows)
        took = benchmark.pedantic(lambda: [[round_s(run) for run in runs] for _ in range(PAIRS)], rounds=1)
    ratio, ms = median(this / that for that, this in took), 1e3 * min(this for _, this in took)
    benchmark.extra_info |= {"ratio": ratio, "ms": ms}
    print(f"\n{name}, {uploads} uploads: {ms:.2f} ms a round, {ratio:.3f} times one size (aim of fit 1.3)")
