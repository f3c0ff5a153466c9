"""Shannon rate of a bandwidth, with an optional cap, and the least bandwidth that uploads a payload in time."""

import math

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from numpy.typing import ArrayLike
from scipy.special import lambertw

from edgesim.base.arrays import Floats

_LN2 = float(np.log(2.0))

_LAMBERT_UP_TO = 0.99
"""Largest Gamma for the closed form: beyond it the two terms of W + Gamma cancel."""

_TERMS = np.arange(1, 10)
_LOSS_SERIES = np.concatenate([[0.0], (-1.0) ** (_TERMS + 1) / (_TERMS + 1)])
_LOSS_SLOPE = polyder(_LOSS_SERIES)


def rate_bps(
    bandwidth_hz: ArrayLike, rx_power_w: ArrayLike, noise_w_per_hz: ArrayLike, max_bps_per_hz: float = math.inf
) -> Floats:
    """Shannon rate B log2(1 + p / (B n)) in bit/s, at most ``max_bps_per_hz`` times B; 0 at 0 Hz.

    The first three arguments are finite scalars or arrays that broadcast together; the result is float64 of that
    shape. FedTeddi, section III-B2; the truncation is that of 3GPP TR 36.942, annex A.2.
    """
    bandwidth = np.asarray(bandwidth_hz, dtype=np.float64)
    power = np.asarray(rx_power_w, dtype=np.float64)
    noise_w = np.asarray(bandwidth * np.asarray(noise_w_per_hz, dtype=np.float64))
    if noise_w.all():
        snr = power / noise_w
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            snr = np.where(noise_w > 0, power / noise_w, 0.0)
    rate: Floats = (bandwidth * np.log1p(snr) / _LN2)[()]
    if math.isinf(max_bps_per_hz):
        return rate
    return np.minimum(rate, max_bps_per_hz * bandwidth)


def min_bandwidth_hz(
    payload_bits: ArrayLike,
    time_left_s: ArrayLike,
    rx_power_w: ArrayLike,
    noise_w_per_hz: ArrayLike,
    max_bps_per_hz: float = math.inf,
) -> Floats:
    """Least bandwidth that uploads the payload in the time left, in Hz, at the rate of `rate_bps`.

    The first four arguments are scalars or arrays that broadcast together; the result is float64 of that shape,
    ``inf`` where no bandwidth suffices (no time left, or the wide-band limit ``rx_power / (noise ln 2)`` is not
    above the rate needed).

    FedTeddi, eq. 14; Shi et al., IEEE TWC 2020, Theorem 1 (branch -1 of Lambert W). Both the Shannon rate and its cap
    rise with the bandwidth, so the least bandwidth of their minimum is the greater of the two needs.
    """
    payload, time_left, power, noise = (
        np.asarray(value, dtype=np.float64) for value in (payload_bits, time_left_s, rx_power_w, noise_w_per_hz)
    )
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        gamma = np.asarray(noise * payload * _LN2 / (time_left * power))
    in_time = time_left > 0
    feasible, usual = in_time & (gamma < 1), in_time & (gamma <= _LAMBERT_UP_TO)
    if np.count_nonzero(usual) == usual.size:
        bandwidth = payload * _LN2 / (time_left * _lambert_gap(gamma))
    else:
        payload, time_left, power, noise = (
            np.broadcast_to(values, gamma.shape) for values in (payload, time_left, power, noise)
        )
        bandwidth = np.full(gamma.shape, np.inf)
        bandwidth[usual] = payload[usual] * _LN2 / (time_left[usual] * _lambert_gap(gamma[usual]))
        near_limit = feasible & ~usual
        if near_limit.any():
            bandwidth[near_limit] = power[near_limit] / (noise[near_limit] * _snr_near_limit(gamma[near_limit]))
    if math.isfinite(max_bps_per_hz):
        with np.errstate(divide="ignore"):
            capped_hz = payload / (max_bps_per_hz * time_left)
        bandwidth = np.where(feasible, np.maximum(bandwidth, capped_hz), bandwidth)
    return np.asarray(bandwidth)[()]


def _lambert_gap(gamma: Floats) -> Floats:
    """-(W + Gamma), positive, for 0 <= Gamma <= 0.99."""
    # Branch -1: branch 0 is the trivial root W = -Gamma, infinite bandwidth.
    return np.asarray(-(lambertw(-gamma * np.exp(-gamma), -1).real + gamma))


def _snr_near_limit(gamma: Floats) -> Floats:
    """Root x > 0 of log1p(x) / x = Gamma for 0.99 < Gamma < 1."""
    # 1 - log1p(x)/x = x/2 - x^2/3 + ... is free of the cancellation that spoils the closed form here; x is
    # below 0.0205, so nine terms and two Newton steps reach the last bits.
    loss = 1.0 - gamma
    snr = loss * (2.0 + loss * 8.0 / 3.0)
    for _ in range(2):
        snr = snr - (polyval(snr, _LOSS_SERIES) - loss) / polyval(snr, _LOSS_SLOPE)
    return np.asarray(snr)
