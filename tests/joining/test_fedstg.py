"""FedStg's participation against the numbers of its page (section 3.2, oracle T4), worked out apart from the code."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import in_one_line
from safetensors.numpy import load, save
from scipy import stats

from edgesim.base.saved import pack, unpack
from edgesim.config_file import parse
from edgesim.joining import make_law
from edgesim.joining.joiners import Joiners, JoinMemory
from edgesim.joining.law import Asked, Fleet
from edgesim.streams import Streams

EVERY = np.arange(20)


def joiners(seed=0, s_per_sample=(1.0,) * 20, rounds=100, law="fedstg", **options) -> Joiners:
    """A law of ``[joining]`` at work on devices whose speeds are given, or on 20 of one speed, in 100 rounds."""
    config = parse({"joining": {"law": law, **options}}, "test").joining
    return Joiners(make_law(config), Fleet(np.array(s_per_sample), rounds), Streams(seed))


def chance(law, device, round, accuracy=np.nan):
    asked = Asked(np.array([device]), round, np.array([accuracy]))
    return float(law.law.chances(asked, law.fleet)[0])


@pytest.mark.parametrize(
    ("capability", "accuracy", "share_of_run", "expected"),
    [(1.0, 0.9, 0.0, 0.72), (0.8, 0.5, 1.0, 0.3), (0.9, 0.7, 0.5, 0.378)],
)
def test_the_papers_form_gives_the_published_chances(capability, accuracy, share_of_run, expected):
    """T4; decay is 1 - share / 2. Round 0 is no round, but the beginning of the line."""
    law = joiners(capability=[capability])
    assert chance(law, 0, round(100 * share_of_run), accuracy) == pytest.approx(expected, abs=1e-12)


def test_no_device_joins_with_more_than_the_cap():
    """T4: 0.8 x 1 x 1.5 x 1 = 1.2."""
    assert chance(joiners(performance=1.5), 0, 0) == 0.95
    assert chance(joiners(performance=1.5, cap=0.9), 0, 0) == 0.9


def test_the_codes_form_gives_the_published_chances():
    """T4: the mean capability of 7 fast, 7 medium and 6 slow devices is 0.905."""
    law = joiners(form="code")
    untrained = [chance(law, device, 50) / (0.8 * 0.5) for device in range(3)]
    np.testing.assert_allclose(untrained, [1.104972, 0.994475, 0.883978], atol=1e-6)
    assert chance(law, 0, 10, 0.6) == 0.95
    assert chance(law, 2, 60) == pytest.approx(0.353591, abs=1e-6)
    # 0.7 + 0.1 of a slow device in round 20, whose decay is 0.8.
    assert chance(law, 2, 20, 0.1) == pytest.approx(0.8 * 0.8 / 0.905 * 0.8 * 0.8, abs=1e-12)


def test_performance_in_the_codes_form_is_at_most_one_and_a_half():
    """0.7 + the accuracy, from an accuracy of 0.8 on; a base at which neither cap nor floor of the chance matters."""
    law = joiners(form="code", base=0.4, capability=[1.0])
    found = [chance(law, 0, 10, accuracy) for accuracy in (0.7, 0.8, 0.9, 1.0)]
    assert found == pytest.approx([0.4 * 0.9 * performance for performance in (1.4, 1.5, 1.5, 1.5)], abs=1e-12)


@pytest.mark.parametrize(
    ("performance", "means"),
    [(1, [0.598, 0.5382, 0.4784]), (0.7, [0.419416, 0.381552, 0.348154]), (0.5, [0.3245, 0.309702, 0.301152])],
)
def test_mean_chances_over_100_rounds_are_those_of_the_page(performance, means):
    law = joiners(performance=performance)
    found = [np.mean([chance(law, device, R) for R in range(1, 101)]) for device in range(3)]
    np.testing.assert_allclose(found, means, atol=1e-6)
    measured = joiners()
    same = [np.mean([chance(measured, device, R, performance) for R in range(1, 101)]) for device in range(3)]
    np.testing.assert_allclose(same, means, atol=1e-6)


@pytest.mark.parametrize("form", ["paper", "code"])
def test_performance_is_1_before_a_device_has_trained(form):
    assert chance(joiners(form=form), 4, 7) == chance(joiners(form=form, performance=1.0), 4, 7)


@pytest.mark.parametrize("form", ["paper", "code"])
def test_decay_never_falls_below_a_half_however_many_rounds_there_are(form):
    """A run that ends by time may have more rounds than deadlines fit into it."""
    law = joiners(form=form, performance=1)
    assert chance(law, 0, 500) == chance(law, 0, 100) == pytest.approx(0.4 / (0.905 if form == "code" else 1))


def test_speed_classes_go_by_turns_or_are_equal_parts_in_the_order_of_speeds():
    seconds = [5.0, 1.0, 3.0, 2.0, 6.0, 4.0]
    for classes, expected in (("turns", [0, 1, 2, 0, 1, 2]), ("profile", [2, 0, 1, 0, 2, 1])):
        law = joiners(s_per_sample=seconds, classes=classes, performance=1)
        found = [chance(law, device, 0) for device in range(6)]
        np.testing.assert_allclose(found, 0.8 * np.array([1.0, 0.9, 0.8])[expected])


def test_classes_by_profile_are_as_equal_as_they_can_be_where_the_devices_do_not_divide():
    """The device of rank r among N is of class floor(3 r / N): of 7 devices 3, 2 and 2, of 8 devices 3, 3 and 2."""
    for count, sizes in ((7, (3, 2, 2)), (8, (3, 3, 2))):
        law = joiners(s_per_sample=np.arange(float(count), 0, -1), classes="profile", performance=1)
        found = [chance(law, device, 0) for device in reversed(range(count))]
        np.testing.assert_allclose(found, 0.8 * np.repeat([1.0, 0.9, 0.8], sizes))


@given(st.integers(0, 2**31), st.sampled_from(["paper", "code"]), st.floats(0, 1.5))
def test_as_many_devices_join_as_the_chances_say(seed, form, performance):
    """Of 20 devices in 200 rounds, within five deviations of their sum of Bernoulli draws."""
    law = joiners(seed, rounds=200, form=form, performance=performance)
    answers = [law.ask(EVERY, R) for R in range(1, 201)]
    chances, joined = np.array([a.chance for a in answers]), np.array([a.joined for a in answers])
    assert ((chances >= 0.3) & (chances <= 0.95)).all()
    deviation = np.sqrt((chances * (1 - chances)).sum())
    assert abs(joined.sum() - chances.sum()) < 5 * deviation


def test_draws_of_devices_and_rounds_are_independent_and_uniform():
    law = joiners(floor=0.5, cap=0.5)
    joined = np.array([law.ask(EVERY, R).joined for R in range(1, 501)]).astype(float)
    assert abs(joined.mean() - 0.5) < 5 * 0.5 / 100
    # Neither a device's answers in a row nor those of two devices go together.
    assert stats.pearsonr(joined[1:].ravel(), joined[:-1].ravel()).statistic == pytest.approx(0, abs=0.05)
    assert stats.pearsonr(joined[:, 1:].ravel(), joined[:, :-1].ravel()).statistic == pytest.approx(0, abs=0.05)


def test_all_laws_share_a_devices_draw_whoever_else_is_asked():
    """A device that joins with a lower chance joins with a higher one; company changes nothing."""
    low, high = joiners(performance=0.5), joiners(performance=1)
    for R in range(1, 30):
        few, many = low.ask(EVERY, R), high.ask(EVERY, R)
        assert (many.joined | ~few.joined).all()
        alone = low.ask(np.array([3, 11]), R)
        assert alone.joined.tolist() == few.joined[[3, 11]].tolist()
        assert few.joiners.tolist() == EVERY[few.joined].tolist()
        assert joiners(seed=1, performance=0.5).ask(EVERY, R).chance.tolist() == few.chance.tolist()
    others = [joiners(seed=1, performance=0.5).ask(EVERY, R).joined.tolist() for R in range(1, 30)]
    assert others != [low.ask(EVERY, R).joined.tolist() for R in range(1, 30)]


def test_performance_is_the_mean_of_the_last_three_epochs_or_of_fewer():
    law = joiners(floor=0.0)
    for learnt, mean in (([0.5], 0.5), ([0.7], 0.6), ([0.3, 0.8], 0.6), ([0.1, 0.1, 0.1, 0.4], 0.2)):
        law.learn(3, learnt)
        answers = law.ask(EVERY, 50)
        assert answers.chance[3] == pytest.approx(0.8 * 1.0 * mean * 0.75)
        assert answers.chance[6] == pytest.approx(0.8 * 1.0 * 0.75)


def test_what_is_saved_of_it_lets_another_go_on_as_the_first():
    law, other = joiners(), joiners()
    law.learn(4, [0.2, 0.4])
    packed, arrays = pack(law.memory)
    other.memory = unpack(JoinMemory, json.loads(json.dumps(packed, allow_nan=False)), load(save(arrays)))
    for each in (law, other):
        each.learn(4, [0.9])
    assert law.ask(EVERY, 9).chance.tolist() == other.ask(EVERY, 9).chance.tolist()
    assert law.ask(EVERY, 9).chance[4] != joiners().ask(EVERY, 9).chance[4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"law": "fedsgt"}, "joining.law: unknown law 'fedsgt', did you mean 'fedstg'. known: all, fedstg"),
        ({"law": "fedstg", "base": 0.0}, "joining.base: input should be greater than 0"),
        ({"law": "fedstg", "cap": 1.2}, "joining.cap: input should be less than or equal to 1"),
        ({"law": "fedstg", "floor": 0.5, "cap": 0.4}, r"joining: floor \(0.5\) must not be above cap \(0.4\)"),
        ({"law": "fedstg", "capability": []}, "joining.capability: list should have at least 1 item"),
        ({"law": "fedstg", "capability": [2.0]}, r"joining.capability\[0\]: input should be less than or equal to 1"),
        ({"law": "fedstg", "performance": "best"}, "joining.performance: input should be 'measured' or a valid number"),
        ({"law": "fedstg", "performance": 1.6}, "joining.performance: input should be less than or equal to 1.5"),
        ({"law": "fedstg", "form": "log"}, "joining.form: input should be 'paper' or 'code'"),
        ({"law": "all", "base": 0.5}, "joining.base: is an option of law 'fedstg', not of 'all'"),
        ({"law": "fedstg", "speed": 2}, "unknown key 'joining.speed'"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, said):
    with in_one_line(said):
        make_law(parse({"joining": options}, "test").joining)
