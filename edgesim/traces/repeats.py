"""Instants of repeated recordings, exact to the last bit of the clock.

At instant t a repeated recording of length L is at the position ``t mod L``, which floating point computes exactly. The
inverse, ``cycle * L + within``, is rounded. If it is rounded down, the clock is still before the event at ``within``,
so it has to be rounded up.
"""

import numpy as np

from edgesim.base.arrays import Floats


def instants_s(cycle: Floats | float, length_s: Floats | float, within_s: Floats | float) -> Floats:
    """The least floating-point numbers that are not below the exact ``cycle * length_s + within_s``.

    Arguments are finite and broadcast together, ``within_s`` at most ``length_s``; the result has their shape. For
    every floating-point t, ``t >= instants_s(...)`` holds if and only if t is not below the exact sum.
    """
    lengths_s = np.asarray(length_s, dtype=np.float64)
    over = np.asarray(within_s) >= lengths_s
    whole, rest_s = np.asarray(cycle) + over, np.where(over, 0.0, within_s)
    product_s = whole * lengths_s
    sum_s, lost_s = _added(product_s, rest_s)
    # The error of both roundings, itself exact for fewer than 2^50 repetitions.
    missing_s = _lost(whole, lengths_s, product_s) + lost_s
    when_s = np.where(missing_s > 0, np.nextafter(sum_s, np.inf), sum_s)
    # Each rounding is off by half a step at most: the sum is a whole step too high only if both rounded up from a tie.
    below_s = np.nextafter(sum_s, -np.inf)
    return np.where(missing_s == below_s - sum_s, below_s, when_s)


def _added(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """A sum and its exact rounding error (Knuth's TwoSum)."""
    total = np.asarray(left + right)
    second = total - left
    return total, np.asarray((left - (total - second)) + (right - second))


def _lost(left: Floats, right: Floats, product: Floats) -> Floats:
    """The exact rounding error of a product (Dekker's algorithm), as long as nothing overflows."""
    left_high, right_high = _high(left), _high(right)
    left_low, right_low = left - left_high, right - right_high
    rest = ((product - left_high * right_high) - left_low * right_high) - left_high * right_low
    return np.asarray(left_low * right_low - rest)


def _high(value: Floats) -> Floats:
    """The leading 26 bits of each value (Veltkamp's splitting)."""
    shifted = value * float(2**27 + 1)
    return np.asarray(shifted - (shifted - value))
