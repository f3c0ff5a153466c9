"""Equal finish: the least common finish time; optimal for the end of a round."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.channels.allocators.request import Floats, Request
from edgesim.channels.bandwidth import min_bandwidth_hz
from edgesim.errors import EdgesimError

_EPSILON = float(np.finfo(np.float64).eps)
_TOLERANCE = 1e-9
"""Relative excess over the band at the latest instant that counts as rounding of the admission rule."""


def allocate(request: Request) -> Floats:
    """Bandwidths that end all uploads at one instant, the least one possible, [S]; beyond the deadline if need be."""
    latest_s = request.deadline_s
    while _total_hz(request, latest_s) > request.bandwidth_hz:
        latest_s *= 2
    _, bandwidth_hz = equal_finish_s(
        request.payload_bits,
        request.ready_s,
        request.rx_power_w,
        request.noise_w_per_hz,
        request.bandwidth_hz,
        latest_s,
    )
    return bandwidth_hz


def _total_hz(request: Request, finish_s: float) -> float:
    left_s = finish_s - request.ready_s
    return float(min_bandwidth_hz(request.payload_bits, left_s, request.rx_power_w, request.noise_w_per_hz).sum())


def equal_finish_s(
    payload_bits: ArrayLike,
    start_s: ArrayLike,
    rx_power_w: ArrayLike,
    noise_w_per_hz: ArrayLike,
    bandwidth_hz: float,
    latest_s: float,
) -> tuple[float, NDArray[np.float64]]:
    """Least common finish instant of uploads that share a band, and the bandwidth of each.

    The first four arguments are scalars or arrays that broadcast to at least one upload, [n]; ``start_s`` and
    ``latest_s`` are instants of one clock. Returns (T, bandwidths): T <= ``latest_s`` is the least instant at
    which the least bandwidths over (T - start_s) fit into the band, and their sum never exceeds the band, in
    whatever order it is formed. Raises `EdgesimError` if the band is too narrow even for ``latest_s``.

    Solves sum_n B*_n(T - start_n) = B, with B*_n from FedTeddi, eq. 14, by bisection.
    """
    payload, start, power, noise = np.broadcast_arrays(
        *(
            np.atleast_1d(np.asarray(value, dtype=np.float64))
            for value in (payload_bits, start_s, rx_power_w, noise_w_per_hz)
        )
    )
    # A sum of n terms, rounded in any order, is off by less than n eps.
    fits_hz = bandwidth_hz / (1.0 + payload.size * _EPSILON)

    finish_s = latest_s
    shares = min_bandwidth_hz(payload, finish_s - start, power, noise)
    total_hz = shares.sum()
    if total_hz > bandwidth_hz * (1.0 + _TOLERANCE):
        raise EdgesimError(
            f"equal_finish_s: {payload.size} uploads need {total_hz:.6g} Hz to end by {latest_s:g} s, "
            f"the band has {bandwidth_hz:.6g} Hz; schedule fewer, widen the band or allow more time"
        )
    if total_hz > fits_hz:
        return finish_s, shares * (fits_hz / total_hz)

    too_early_s = float((start + noise * payload * np.log(2.0) / power).max())
    while too_early_s < (middle_s := too_early_s + (finish_s - too_early_s) / 2) < finish_s:
        candidate = min_bandwidth_hz(payload, middle_s - start, power, noise)
        if candidate.sum() <= fits_hz:
            finish_s, shares = middle_s, candidate
        else:
            too_early_s = middle_s
    return finish_s, shares
