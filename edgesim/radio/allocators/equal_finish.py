"""Equal finish: the least common finish time; optimal for the end of a round."""

from collections.abc import Callable

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.radio.allocators.allocator import Request
from edgesim.radio.allocators.least import Least

_EPSILON = float(np.finfo(np.float64).eps)
_LATEST = 1e6
"""Latest common finish that is searched, in multiples of the deadline."""

_TOLERANCE = 1e-9
"""Relative excess over the band, at the latest instant, that is taken for rounding of the admission rule."""


def allocate(request: Request) -> Floats:
    """Bandwidths that end all uploads at the same, earliest possible instant, [S], which may be after the deadline."""
    latest_s = request.deadline_s
    while not request.least_hz(latest_s).sum() <= request.bandwidth_hz:
        latest_s *= 2
        if latest_s >= _LATEST * request.deadline_s:
            # A recorded band may stop carrying bits before all uploads end, so that there is no common finish.
            return Least().allocate(request)
    _, bandwidth_hz = equal_finish_s(request.least_hz, request.ready_s.max(), request.bandwidth_hz, latest_s)
    return bandwidth_hz


def equal_finish_s(
    least_hz: Callable[[float], Floats], earliest_s: float, bandwidth_hz: float, latest_s: float
) -> tuple[float, Floats]:
    """Least common finish instant of uploads that share a band, and the bandwidth of each, [n].

    ``least_hz`` gives the least bandwidths that end the uploads by an instant, [n >= 1]; the later the instant, the
    smaller they are. No finish lies before ``earliest_s``. Returns (T, bandwidths): T <= ``latest_s`` is the least
    instant for which they fit into the band, and their sum does not exceed the band in any order of summation. Raises
    `EdgesimError` if the band is too narrow even for ``latest_s``.

    Solves sum_n B*_n(T) = B by bisection; over a band with Shannon rates B*_n is that of FedTeddi, eq. 14.
    """
    finish_s = latest_s
    shares = least_hz(finish_s)
    # A sum of n terms, rounded in any order, is off by less than n eps.
    fits_hz = bandwidth_hz / (1.0 + shares.size * _EPSILON)
    total_hz = shares.sum()
    if total_hz > bandwidth_hz * (1.0 + _TOLERANCE):
        raise EdgesimError(
            f"equal_finish_s: {shares.size} uploads need {total_hz:.6g} Hz to end by {latest_s:g} s, "
            f"the band has {bandwidth_hz:.6g} Hz; schedule fewer, widen the band or allow more time"
        )
    if total_hz > fits_hz:
        return finish_s, shares * (fits_hz / total_hz)

    too_early_s = float(earliest_s)
    while too_early_s < (middle_s := too_early_s + (finish_s - too_early_s) / 2) < finish_s:
        candidate = least_hz(middle_s)
        if candidate.sum() <= fits_hz:
            finish_s, shares = middle_s, candidate
        else:
            too_early_s = middle_s
    return finish_s, shares
