"""Ranges and lists of a tuning: what is read from the command line, and what the config takes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import in_one_line
from small_runs import TIMING

from edgesim.tuning.knobs import Knob, check_knobs, parse_knobs


def checked(*texts):
    return check_knobs(TIMING, parse_knobs(texts))


def test_ranges_and_lists_are_read_as_a_config_file_would():
    assert parse_knobs(["a.b=0.1:2", "c=5e6,10e6", "d=random, oort", "e=true,false", "f=1:2,3:4"]) == {
        "a.b": (0.1, 2.0),
        "c": [5e6, 10e6],
        "d": ["random", "oort"],
        "e": [True, False],
        "f": ["1:2", "3:4"],
    }


def test_values_from_python_may_be_an_array_but_not_a_single_number():
    listed, array = ({"round.tmax_s": values} for values in ([0.5, 1.0], np.array([0.5, 1.0])))
    assert check_knobs(TIMING, array) == check_knobs(TIMING, listed)
    with in_one_line(r"knob round\.tmax_s: has no range"):
        check_knobs(TIMING, {"round.tmax_s": 0.5})


def test_a_range_is_logarithmic_from_a_decade_on_and_whole_where_the_config_takes_no_fractions():
    near, far, whole, many = checked(
        "round.tmax_s=0.5:2", "radio.bandwidth_hz=1000000:10000000", "devices.count=5:9", "rounds=10:1000"
    )
    assert [(knob.is_log, knob.whole) for knob in (near, far, whole, many)] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]
    assert "0.5 to 2, linear" in near.described()
    assert "1e+06 to 1e+07, logarithmic, since it spans a decade or more" in far.described()
    assert "whole numbers 5 to 9" in whole.described()


def test_an_option_counts_as_taken_where_another_knob_has_its_owner():
    policy, option = checked("selection.policy=random,power-of-choice", "selection.d=12,20")
    assert policy.choices == ("random", "power-of-choice")
    assert option.choices == (12, 20)


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0, 1))
def test_a_number_from_a_range_has_four_digits_and_lies_in_it(one, other, share):
    low, high = sorted((one, other))
    knob = Knob("x", low=low, high=high)
    value = knob.value(low + share * (high - low))
    assert low <= value <= high
    assert value in (low, high) or math.isclose(value, float(f"{value:.4g}"), rel_tol=1e-12)


@given(st.lists(st.integers(-50, 50), min_size=2, unique=True))
def test_parameters_and_values_are_each_others_inverse(choices):
    for knob in (Knob("x", tuple(sorted(choices))), Knob("x", tuple(map(str, choices)))):
        assert [knob.value(knob.parameter(value)) for value in knob.choices] == list(knob.choices)
        assert knob.parameter("elsewhere") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("round.tmaxs=0.1:2", r"knob round.tmaxs: unknown key 'round.tmaxs', did you mean 'round.tmax_s'\?"),
        ("round.tmax_s=2:0.1", r"knob round.tmax_s=2:0.1: expected a range whose first number is the smaller one"),
        ("round.tmax_s=1:1", "expected a range whose first number is the smaller one"),
        ("round.tmax_s=-1:2", r"knob round.tmax_s: round.tmax_s: input should be greater than .* \(got -1\)"),
        ("round.tmax_s=1:inf", "expected a range of two finite numbers"),
        ("round.tmax_s=1:2:3", r"knob round.tmax_s: has no range; expected KEY=LOW:HIGH or KEY=VALUE,VALUE"),
        ("round.tmax_s=a:b", r"knob round.tmax_s=a:b: expected KEY=LOW:HIGH"),
        ("round.tmax_s=0.8", "knob round.tmax_s: has no range; expected KEY=LOW:HIGH"),
        ("round.tmax_s", "knob round.tmax_s: expected KEY=LOW:HIGH"),
        ("round.tmax_s=", "expected KEY=LOW:HIGH"),
        ("round.tmax_s=1,,2", "expected KEY=LOW:HIGH"),
        ("round.tmax_s=1,2,1", "knob round.tmax_s: 1 is given twice"),
        ("selection.policy=random,ort", r"selection.policy: unknown policy 'ort', did you mean 'oort'\?"),
        ("round.tmax_s.x=1:2", r"knob round.tmax_s.x: .*round.tmax_s"),
        ("seed=0:5", "knob seed: the runs of a trial differ in it"),
        ("rounds=1.5:9.5", r"knob rounds: rounds: input should be a valid integer"),
    ],
)
def test_a_knob_that_the_config_does_not_have_or_a_value_that_it_refuses_is_named(text, told):
    with in_one_line(told):
        checked(text)


def test_a_knob_is_given_once_and_one_is_needed():
    with in_one_line(r"round\.tmax_s is given twice"):
        parse_knobs(["round.tmax_s=1:2", "round.tmax_s=2:3"])
    with in_one_line("no knob to tune"):
        checked()
