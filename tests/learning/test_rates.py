import numpy as np
import pytest
from refusals import in_one_line

from edgesim.config_file import parse
from edgesim.learning.rates import SCHEDULES, rate_in

FEDSTG = {
    1: 0.000999877,
    50: 0.00075,
    75: 0.000573223,
    76: 0.000425818,
    90: 0.000384177,
    91: 0.000191222,
    100: 0.0001875,
}
"""T9 of FedStg's page."""


def learning(**options):
    return parse({"learning": options}, "test").learning


def test_fedstgs_schedule_gives_the_published_rates_and_is_its_codes_formula_in_every_round():
    """.0005 + .00025 (1 + cos(pi R / 100)), x .75 for R > 75, and max(.5 x, 1e-4) for R > 90."""
    R = np.arange(1, 101)
    rates = 0.0005 + 0.00025 * (1 + np.cos(np.pi * R / 100))
    rates[R > 75] *= 0.75
    rates[R > 90] = np.maximum(0.5 * rates[R > 90], 1e-4)
    own = learning(lr=0.001, lr_schedule="fedstg")
    np.testing.assert_allclose([rate_in(own, int(r)) for r in R], rates, rtol=1e-12)
    assert rate_in(own, 150) == rate_in(own, 100)
    assert {R: rate_in(own, R) for R in FEDSTG} == pytest.approx(FEDSTG, abs=6e-10)


def test_a_schedule_for_fewer_rounds_passes_through_the_same_rates_sooner():
    short, whole = learning(lr=0.2, lr_schedule="fedstg", lr_rounds=20), learning(lr=0.2, lr_schedule="fedstg")
    for R in range(1, 21):
        assert rate_in(short, R) == pytest.approx(rate_in(whole, 5 * R))


@pytest.mark.parametrize(
    ("options", "rates"),
    [
        ({"lr": 0.8, "lr_decay": 0.5, "lr_decay_every": 3}, {1: 0.8, 3: 0.8, 4: 0.4, 6: 0.4, 7: 0.2}),
        # 0.08 / (t + 1), as DPFL's MIFA has it from round 2 on.
        (
            {"lr": 0.04, "lr_offset": 1.0, "lr_min": 1e-3},
            {1: 0.04, 2: 0.08 / 3, 3: 0.02, 7: 0.01, 79: 1e-3, 1000: 1e-3},
        ),
        # FedDance's settings, oracle T12, whose rounds count from 0.
        (
            {"lr": 0.1, "lr_decay": 0.98, "lr_decay_every": 10, "lr_min": 5e-5},
            {1: 0.1, 10: 0.1, 11: 0.098, 101: 0.081707, 1001: 0.013262, 100_001: 5e-5},
        ),
    ],
    ids=["halved", "MIFA", "T12"],
)
def test_without_a_schedule_the_rate_decays_down_to_its_floor(options, rates):
    for own in (learning(**options), learning(**options, lr_schedule="decay")):
        assert {R: rate_in(own, R) for R in rates} == pytest.approx(rates, abs=5e-7)
    assert set(SCHEDULES) == {"decay", "fedstg"}


def test_jobs_train_at_the_rate_of_their_round(make_learner):
    learner = make_learner(learning={"lr": 0.001, "lr_schedule": "fedstg", "pretrain": False})
    for round in (1, 76, 91):
        (promise,) = learner.open_round(round, 1).start(np.array([0]))
        assert promise.job.optimiser.lr == pytest.approx(FEDSTG[round], abs=6e-10)


FIXED = {"lr_schedule": "fedstg"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lr_schedule": "cosine"}, "learning.lr_schedule: input should be 'decay' or 'fedstg'"),
        (FIXED | {"lr_decay": 0.9}, r"learning\.lr_schedule = 'fedstg' needs learning\.lr_decay = 0\.9992, n"),
        (FIXED | {"lr_offset": 1.0}, r"learning\.lr_schedule = 'fedstg' does not go with learning\.lr_offset = 1"),
        (FIXED | {"lr_min": 0.01}, r"learning\.lr_schedule = 'fedstg' needs learning\.lr_min = 0, not 0\.01"),
        ({"lr_rounds": 50}, r"learning\.lr_rounds = 50 needs learning\.lr_schedule = 'fedstg'"),
    ],
)
def test_a_schedule_is_refused_beside_what_belongs_to_the_other(options, said):
    with in_one_line(said):
        learning(**options)
