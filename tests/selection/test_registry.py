import pytest

from edgesim.base.errors import EdgesimError
from edgesim.selection import SELECTORS, make_selector, resolve_options


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("random", {}),
        ("power-of-choice", {"d": 15}),
        ("fed-cbs", {"kappa": 10.0}),
        ("fedcgd", {"p_source": "batch", "L_mode": "eq18", "on_bw_fail": "skip"}),
        (
            "feddance",
            {"history_rounds": 50, "future_rounds": 5, "accuracy_window": 5, "acc_map": "shifted", "unheard": "zero"}
            | {"init_newcomers": False, "without": "none", "predictor": None, "predictor_options": None},
        ),
        (
            "oort",
            {"exploration": 0.9, "exploration_decay": 0.98, "exploration_min": 0.3, "cut": 0.05, "penalty": 2.0}
            | {"pacer_start": 30.0, "pacer_step": 20, "pacer_delta": 5.0},
        ),
        (
            "refl",
            {"cool_down": 5, "forecast": "oracle", "oracle_accuracy": 0.9}
            | {"predictor": None, "predictor_options": None, "history_rounds": 50, "window": "deadline"},
        ),
        ("safa", {"quota": 0.1}),
        ("safa-lite", {}),
        ("fedcs", {"uploads": "sequential"}),
        ("availability-first", {}),
        ("stays-longest", {}),
        ("fedteddi", {"p_source": "batch", "L_mode": "eq18", "on_bw_fail": "skip", "lambda_0": 2.0}),
    ],
)
def test_options_have_the_defaults_of_their_papers(policy, expected):
    assert resolve_options(policy, {}) == expected


@pytest.mark.parametrize(
    ("policy", "options", "says"),
    [
        ("fedtedi", {}, ["selection.policy", "'fedtedi'", "did you mean 'fedteddi'?", *SELECTORS]),
        ("xyz", {}, ["unknown policy 'xyz'; known:", *SELECTORS]),
        ("power-of-choice", {"d": 0}, ["'power-of-choice'", "d: ", "greater than or equal to 1", "0"]),
        ("fedteddi", {"L_mode": "two"}, ["L_mode: ", "'eq18'", "'two'"]),
        ("fedteddi", {"lambda_0": -1.0}, ["lambda_0: ", "greater than or equal to 0"]),
        ("feddance", {"history_rounds": 0}, ["'feddance'", "history_rounds: ", "greater than or equal to 1"]),
        ("feddance", {"accuracy_window": 1}, ["accuracy_window: ", "greater than or equal to 2"]),
        ("feddance", {"acc_map": "square"}, ["acc_map: ", "'shifted'", "'square'"]),
        ("oort", {"exploration": 1.5}, ["exploration: ", "less than or equal to 1"]),
        ("oort", {"pacer_step": 0}, ["pacer_step: ", "greater than or equal to 1"]),
        ("feddance", {"history_rounds": 10**11}, ["history_rounds: ", "less than or equal to 100000"]),
        ("feddance", {"future_rounds": 10**20}, ["future_rounds: ", "less than or equal to 100000"]),
        ("feddance", {"accuracy_window": 10**11}, ["accuracy_window: ", "less than or equal to 100000"]),
        ("oort", {"pacer_step": 10**11}, ["pacer_step: ", "less than or equal to 100000"]),
        ("oort", {"exploration": 0.2}, ["exploration_min (0.3) must not be above exploration (0.2)"]),
        ("refl", {"cool_down": 10**20}, ["cool_down: ", "less than or equal to 100000"]),
        ("refl", {"history_rounds": 10**11}, ["history_rounds: ", "less than or equal to 100000"]),
        ("refl", {"oracle_accuracy": 0.0}, ["oracle_accuracy: ", "greater than 0"]),
        ("safa", {"quota": 0.0}, ["quota: ", "greater than 0"]),
        ("fedcs", {"uploads": "random"}, ["uploads: ", "'sequential'", "'random'"]),
    ],
)
def test_a_bad_policy_or_option_is_refused_in_one_line(policy, options, says):
    for ask in (lambda: make_selector(policy, options, 6, 3), lambda: resolve_options(policy, options)):
        with pytest.raises(EdgesimError) as refusal:
            ask()
        message = str(refusal.value)
        assert "\n" not in message
        assert [part for part in says if part not in message] == [], message
