"""Instants of recordings that are repeated, exact to the last bit of the clock.

A recording of length L that is repeated is at ``t mod L`` at the instant t, which floating point gives exactly. The
other way, ``cycle * L + within``, is rounded, and an instant rounded down is one at which what begins there has not
begun yet.
"""

import numpy as np

from edgesim.arrays import Floats


def instants_s(cycle: Floats | float, length_s: Floats | float, within_s: Floats | float) -> Floats:
    """The least floating-point instants at or behind ``cycle * length_s + within_s`` (at most the length) as reals.

    Finite arguments that broadcast together; the result has their shape. For every floating-point instant t,
    ``t >= instants_s(...)`` holds exactly where t is at or behind the real sum.
    """
    lengths_s = np.asarray(length_s, dtype=np.float64)
    over = np.asarray(within_s) >= lengths_s
    whole, rest_s = np.asarray(cycle) + over, np.where(over, 0.0, within_s)
    product_s = whole * lengths_s
    sum_s, lost_s = _added(product_s, rest_s)
    # What both roundings lost: exact for any number of repetitions that a clock gets to (below 2^50).
    missing_s = _lost(whole, lengths_s, product_s) + lost_s
    when_s = np.where(missing_s > 0, np.nextafter(sum_s, np.inf), sum_s)
    # Each loses half a step at most, so only where both round up from the middle is the sum a whole step too late.
    below_s = np.nextafter(sum_s, -np.inf)
    return np.where(missing_s == below_s - sum_s, below_s, when_s)


def _added(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """A sum and what its rounding lost, exactly (Knuth)."""
    total = np.asarray(one + other)
    second = total - one
    return total, np.asarray((one - (total - second)) + (other - second))


def _lost(one: Floats, other: Floats, product: Floats) -> Floats:
    """What the rounding of a product lost: Dekker's algorithm, exact as long as nothing overflows."""
    one_high, other_high = _high(one), _high(other)
    one_low, other_low = one - one_high, other - other_high
    return np.asarray(
        one_low * other_low - (((product - one_high * other_high) - one_low * other_high) - one_high * other_low)
    )


def _high(value: Floats) -> Floats:
    """The first 26 bits (Veltkamp)."""
    shifted = value * float(2**27 + 1)
    return np.asarray(shifted - (shifted - value))
