"""FedDance and its rivals among 100,000 devices; beside each number stands what the project aims at.

Each time is also given as a multiple of a yardstick, a stable sort of as many random numbers on the same machine.
"""

from statistics import median
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sizes import size, wall_s

from edgesim.learning.models import new_model
from edgesim.learning.selection_overhead import of_feddance, of_oort
from edgesim.prediction import CheckInLog, make_predictor
from edgesim.selection import make_selector
from edgesim.selection.view import Feedback, RoundReport
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals

DEVICES, PLACES = size((100_000, 100), (1000, 10))
EVERYONE = np.arange(DEVICES)


@pytest.fixture(scope="module")
def yardstick_s():
    values = np.random.default_rng(0).random(DEVICES)
    return median(wall_s(lambda: np.argsort(values, kind="stable")) for _ in range(7))


def note(benchmark, yardstick_s):
    """The median, and what it is in yardsticks; nothing is timed where tests run in several processes."""
    if benchmark.stats is None:
        return
    benchmark.extra_info["yardsticks"] = benchmark.stats.stats.median / yardstick_s
    print(f"\n{1e3 * benchmark.stats.stats.median:.2f} ms, {benchmark.extra_info['yardsticks']:.2f} yardsticks")


@pytest.fixture(scope="module")
def phones():
    """A recorded week of all devices, sessions of minutes and gaps of hours: 2.9 million rows, repeated at its end."""
    random, week_s, sessions = np.random.default_rng(3), 604_800.0, 29
    bounds_s = random.exponential((16_700.0, 4_200.0) * sessions, (DEVICES, 2 * sessions)).cumsum(axis=1)
    bounds_s *= week_s / bounds_s[:, -1:]
    device = np.repeat(EVERYONE, sessions)
    start_s, end_s = bounds_s.reshape(-1, 2).T.copy()
    return IntervalTable(Intervals(device, start_s, end_s, np.full(DEVICES, week_s)), "wrap")


def report(round, random, selected):
    """A fifth of the devices there, as on the traces; all of those selected arrive."""
    size = len(selected)
    feedback = Feedback(selected, *(random.random((5, size)) + 0.1))
    there = np.flatnonzero(random.random(DEVICES) < 0.2)
    return RoundReport(
        round, lambda: there, selected, selected, feedback, None, 100.0, 100.0 * round, None, lambda: None
    )


def test_time_to_predict_who_will_be_there(benchmark, yardstick_s):
    """Aim: under 5 ms per round, the log's own upkeep included."""
    random, log = np.random.default_rng(1), CheckInLog.empty(DEVICES, 50)
    rounds = [np.flatnonzero(random.random(DEVICES) < 0.2) for _ in range(60)]
    for there in rounds:
        log.append(there)
    later = iter(rounds * 1000)

    def predict():
        log.append(next(later))
        return make_predictor("poisson")(log, EVERYONE, 5)

    chances = benchmark(predict)
    note(benchmark, yardstick_s)
    assert chances == pytest.approx(1 - np.exp(-log.counts / 50 * 5))


@pytest.mark.parametrize("policy", ["feddance", "oort", "refl", "safa-lite", "availability-first", "random"])
def test_time_to_select_among_a_hundred_thousand(benchmark, yardstick_s, phones, view_of, policy):
    """Aim: under 50 ms for FedDance, Oort and REFL, with everybody checked in and thousands tried before.

    REFL's oracle reads a recorded week.
    """
    random = np.random.default_rng(2)
    selector = make_selector(policy, {}, DEVICES, 10)
    for r in range(1, 51):
        selector.hear(report(r, random, random.choice(DEVICES, DEVICES // 200, replace=False)))
    ready_s, now_s = random.random(DEVICES), 250_000.0
    estimates = SimpleNamespace(
        places=lambda: PLACES,
        ready_s=lambda rows: ready_s[rows],
        upload_s=lambda rows, at_once: ready_s[rows],
        finish_s=lambda rows, at_once: ready_s[rows],
        leaves_s=lambda rows, horizon_s: phones.available_until(EVERYONE[rows], now_s, now_s + horizon_s) - now_s,
    )
    samples = random.integers(40, 50, DEVICES)
    view = view_of(
        DEVICES,
        round=51,
        t_s=now_s,
        tmax_s=100.0,
        batch_size=24,
        delay_s=ready_s,
        samples=samples,
        work_samples=np.full(DEVICES, 24),
        times_selected=random.integers(0, 5, DEVICES),
        estimates=estimates,
    )
    offer = benchmark(lambda: next(selector.choose(view)))
    note(benchmark, yardstick_s)
    assert len(np.unique(offer[:PLACES])) == PLACES


@pytest.mark.parametrize("selector", ["feddance", "oort", "refl"])
def test_time_that_a_selector_takes_from_a_device(benchmark, selector):
    """FedDance's fig. 18: 0.17 ms, 0.47 ms and 3 s on average; here a small CNN and 131 samples like EMNIST's."""
    model = new_model("small-cnn", (1, 28, 28), 47, 0).eval()
    images, labels = torch.rand(131, 1, 28, 28), torch.arange(131) % 47
    with torch.inference_mode():
        logits = model(images[:32])
    log, random = CheckInLog.empty(1, 50), np.random.default_rng(4)
    for present in random.random(50) < 0.2:
        log.append(np.arange(present))
    work = {
        "feddance": lambda: of_feddance(logits, labels[:32]),
        "oort": lambda: of_oort(model, images, labels, 32),
        "refl": lambda: make_predictor("arima")(log, np.array([0]), 5),
    }
    benchmark(work[selector])
    if benchmark.stats is not None:
        print(f"\n{1e3 * benchmark.stats.stats.median:.3f} ms")
