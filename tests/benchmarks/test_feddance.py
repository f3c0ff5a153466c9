"""FedDance and its rivals among 100,000 devices; beside each number stands what the project aims at.

Each time is also given as a multiple of a yardstick, a stable sort of as many random numbers on the same machine.
"""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from edgesim.prediction import PREDICTORS, CheckInLog
from edgesim.selection import make_selector
from edgesim.selection.view import Feedback, RoundReport, RoundView
from edgesim.streams import Streams

DEVICES, PLACES = 100_000, 100
EVERYONE = np.arange(DEVICES)


@pytest.fixture(scope="module")
def yardstick_s():
    values, times = np.random.default_rng(0).random(DEVICES), []
    for _ in range(7):
        started = time.perf_counter()
        np.argsort(values, kind="stable")
        times.append(time.perf_counter() - started)
    return sorted(times)[3]


def note(benchmark, yardstick_s):
    """The median, and what it is in yardsticks; nothing is timed where tests run in several processes."""
    if benchmark.stats is None:
        return
    benchmark.extra_info["yardsticks"] = benchmark.stats.stats.median / yardstick_s
    print(f"\n{1e3 * benchmark.stats.stats.median:.2f} ms, {benchmark.extra_info['yardsticks']:.2f} yardsticks")


def report(round, random, selected):
    """A fifth of the devices there, as on the traces; all of those selected arrive."""
    size = len(selected)
    feedback = Feedback(selected, *(random.random((4, size)) + 0.1))
    return RoundReport(round, np.flatnonzero(random.random(DEVICES) < 0.2), selected, selected, feedback, None)


def test_time_to_predict_who_will_be_there(benchmark, yardstick_s):
    """Aim: under 5 ms per round, the log's own upkeep included."""
    random, log = np.random.default_rng(1), CheckInLog.empty(DEVICES, 50)
    rounds = [np.flatnonzero(random.random(DEVICES) < 0.2) for _ in range(60)]
    for there in rounds:
        log.append(there)
    later = iter(rounds * 1000)

    def predict():
        log.append(next(later))
        return PREDICTORS["poisson"](log, EVERYONE, 5)

    chances = benchmark(predict)
    note(benchmark, yardstick_s)
    assert chances == pytest.approx(1 - np.exp(-log.counts / 50 * 5))


@pytest.mark.parametrize("policy", ["feddance", "oort", "refl", "safa-lite", "availability-first", "random"])
def test_time_to_select_among_a_hundred_thousand(benchmark, yardstick_s, policy):
    """Aim: under 50 ms for FedDance, Oort and REFL, with everybody checked in and thousands tried before."""
    random = np.random.default_rng(2)
    selector = make_selector(policy, {}, DEVICES, 10)
    for r in range(1, 51):
        selector.hear(report(r, random, random.choice(DEVICES, 500, replace=False)))
    ready_s, leaves_s = random.random(DEVICES), random.exponential(2.0, DEVICES)
    outlook = SimpleNamespace(
        places=lambda: PLACES,
        ready_s=lambda rows: ready_s[rows],
        upload_s=lambda rows, at_once: ready_s[rows],
        leaves_s=lambda rows, horizon_s: leaves_s[rows],
    )
    samples = random.integers(40, 50, DEVICES)
    view = RoundView(
        round=51,
        frame=1,
        round_in_frame=51,
        rounds_in_frame=100,
        t_s=0.0,
        tmax_s=1.0,
        batch_size=24,
        ids=EVERYONE,
        gain=np.ones(DEVICES),
        delay_s=ready_s,
        need_hz=np.ones(DEVICES),
        samples=samples,
        work_samples=np.full(DEVICES, 24),
        times_selected=random.integers(0, 5, DEVICES),
        streams=Streams(0),
        knowledge=SimpleNamespace(),
        outlook=outlook,
    )
    offer = benchmark(lambda: next(selector.choose(view)))
    note(benchmark, yardstick_s)
    assert len(np.unique(offer[:PLACES])) == PLACES
