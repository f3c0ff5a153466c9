"""Instants of recordings that are repeated, exact to the last bit of the clock.

A recording of length L that is repeated is at ``t mod L`` at the instant t, which floating point gives exactly. The
other way, ``cycle * L + within``, is rounded, and an instant rounded down is one at which what begins there has not
begun yet.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def instants_s(cycle: Floats | float, length_s: Floats | float, within_s: Floats | float) -> Floats:
    """The least floating-point instants at or behind ``cycle * length_s + within_s`` (at most the length) as reals.

    Finite arguments that broadcast together; the result has their shape. For every floating-point instant t,
    ``t >= instants_s(...)`` holds exactly where t is at or behind the real sum.
    """
    lengths_s = np.asarray(length_s, dtype=np.float64)
    over = np.asarray(within_s) >= lengths_s
    whole, rest_s = np.asarray(cycle) + over, np.where(over, 0.0, within_s)
    when_s = np.asarray(whole * lengths_s + rest_s)
    while np.any(early := _is_before(when_s, whole, lengths_s, rest_s)):
        when_s = np.where(early, np.nextafter(when_s, np.inf), when_s)
    # Two roundings can also leave it a step too late.
    while np.any(late := ~_is_before(below_s := np.nextafter(when_s, -np.inf), whole, lengths_s, rest_s)):
        when_s = np.where(late, below_s, when_s)
    return when_s


def _is_before(t_s: Floats, cycle: Floats, length_s: Floats, within_s: Floats) -> NDArray[np.bool_]:
    laps, phase_s = np.divmod(t_s, length_s)
    return np.asarray((laps < cycle) | ((laps == cycle) & (phase_s < within_s)))
