import math

import numpy as np
import pytest
from statsmodels.tsa.arima.model import ARIMA

from edgesim.prediction import CheckInLog, make_predictor
from edgesim.prediction.poisson import once_or_more

EVERYONE = np.arange(4)


@pytest.fixture
def log():
    """Four devices over 60 rounds, of which the log remembers 50: never, always, every other round, at random."""
    random, log = np.random.default_rng(1), CheckInLog.empty(4, 50)
    for r in range(60):
        log.append(np.flatnonzero([False, True, r % 2 == 0, random.random() < 0.3]))
    return log


@pytest.mark.parametrize(
    ("check_ins", "chance"),
    [(0, 0.0), (1, 0.095163), (6, 0.451188), (7, 0.503415), (10, 0.632121), (25, 0.917915), (50, 0.993262)],
)
def test_the_poisson_chance_of_a_check_in_within_five_rounds(check_ins, chance):
    """Oracle T1; a device is said to be there from 7 of 50 check-ins on."""
    log = CheckInLog.empty(1, 50)
    for r in range(50):
        log.append(np.arange(r < check_ins))
    assert make_predictor("poisson")(log, np.array([0]), 5) == pytest.approx([chance], abs=1e-6)


def test_the_poisson_chance_is_one_minus_the_chance_of_none():
    """Oracle T2: the mass function of mean 1; up to k = K = 5 it does not sum to 1."""
    mass = [math.exp(-1) / math.factorial(k) for k in range(6)]
    assert mass[:4] == pytest.approx([0.367879, 0.367879, 0.183940, 0.061313], abs=1e-6)
    assert sum(mass) == pytest.approx(0.999406, abs=1e-6)
    assert once_or_more(0.2, 5) == pytest.approx(1 - mass[0])


def test_persistence_repeats_the_last_round(log):
    # The last round is 59, an odd one.
    assert make_predictor("persistence")(log, EVERYONE, 5).tolist()[:3] == [0, 1, 0]


@pytest.mark.slow
def test_arima_knows_a_rhythm_that_counts_alone_do_not(log):
    chances = make_predictor("arima")(log, EVERYONE, 1)
    assert chances[:2].tolist() == [0, 1]
    # Device 2 comes in even rounds; the next one is 60. Its mean over the window is a half.
    assert chances[2] > 0.9
    assert ((chances >= 0) & (chances <= 1)).all()
    assert make_predictor("arima")(log, EVERYONE[::-1], 1) == pytest.approx(chances[::-1])


def test_arima_joins_its_forecasts_to_the_chance_of_any(log):
    series = log.history(np.array([3]))[:, 0].astype(float)
    present = np.clip(ARIMA(series, order=(1, 0, 1)).fit().forecast(5), 0, 1)
    assert make_predictor("arima")(log, np.array([3]), 5) == pytest.approx([1 - math.prod(1 - present)])
