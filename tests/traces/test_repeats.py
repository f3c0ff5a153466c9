"""Instants of repeated recordings against whole numbers, in which nothing is rounded."""

import math

import numpy as np

from edgesim.traces.repeats import instants_s


def least_float(number: int) -> float:
    value = float(number)
    while int(value) < number:
        value = math.nextafter(value, math.inf)
    while number and int(math.nextafter(value, 0.0)) >= number:
        value = math.nextafter(value, 0.0)
    return value


def test_an_instant_is_the_first_of_the_clock_that_is_not_before_the_sum():
    # Lengths of 53 bits: a few repetitions of them lie in the middle between two floats every few times.
    rng, size = np.random.default_rng(0), 20_000
    lengths, cycles = rng.integers(2**52, 2**53, size), rng.integers(1, 12, size)
    within = rng.integers(0, lengths)
    within[:10] = lengths[:10]
    found = instants_s(cycles.astype(float), lengths.astype(float), within.astype(float))
    sums = [int(c) * int(length) + int(w) for c, length, w in zip(cycles, lengths, within, strict=True)]
    assert found.tolist() == [least_float(each) for each in sums]
    rounded = cycles * lengths.astype(float) + within
    steps = (found - rounded) / np.spacing(rounded)
    # Among them are sums that floating point has a step too early, right, and a step too late.
    assert set(np.unique(steps)) == {-1.0, 0.0, 1.0}
