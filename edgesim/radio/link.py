"""Uplinks: a shared band by Shannon's formula, a shared band of recorded capacity, or one link per device."""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.radio.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.radio.capacity import NEARLY, CapacityTables

_LN2 = math.log(2.0)


class Known(Protocol):
    """Time for which a link is known: for ever, unless the link was recorded."""

    is_endless: ClassVar[bool] = True
    """Whether no recording of the link ends."""

    def known_until_s(self, device: int) -> float:
        """Instant, in s, from which on a run knows nothing of a device's link; inf if the run does not reach it."""
        return math.inf

    def need_known(self, device: int, now_s: float) -> None:
        """Raise `EdgesimError` if the run's clock, ``now_s``, has reached the end of the link's recording."""
        return


class ReservedLink(Known, Protocol):
    """The uplink of a station for uploads on reservations of their own."""

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Bits that a bandwidth carries between two instants of the run's clock."""

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Instant at which a bandwidth has carried ``bits`` since ``start_s``; inf beyond the end of a recording."""


class PlannedLink(Protocol):
    """The uplink of a station as plans have it: least bandwidths, mean rates and bits of uploads."""

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Bits that a bandwidth is planned to carry between two instants of the run's clock."""

    def least_hz(
        self, ids: Integers, bits: Floats, start_s: Floats, end_s: float, rx_power_w: Floats, origin_s: float
    ) -> Floats:
        """Least bandwidths that carry ``bits`` from ``start_s`` to ``end_s``, [n]; inf where none does.

        Both instants are relative to ``origin_s``, the present instant of the run's clock. Raises `EdgesimError` if the
        clock has reached the end of a recording.
        """

    def mean_bps(self, ids: Integers, bandwidth_hz: float, rx_power_w: Floats, start_s: float, end_s: float) -> Floats:
        """Mean rates of a bandwidth between two instants of the run's clock, at each received power, [n].

        Time beyond the end of a recording is left out of the mean.
        """


class Link(PlannedLink, ReservedLink, Protocol):
    """The uplink of a station of which plans know as much as a run."""


class SharedLink(Known, Protocol):
    """The uplink of a station whose band is shared anew at every change."""

    def rates(self, bandwidth_hz: Floats, rx_power_w: Floats) -> Floats:
        """Rates at which several bandwidths above 0 carry bits, [n], in the link's own unit."""

    def bits_each(self, rates: Floats, start_s: float, end_s: float) -> Floats:
        """Bits that each of the `rates` carries between two instants of the run's clock, [n]."""

    def end_each_s(self, rates: Floats, bits: Floats, start_s: float) -> Floats:
        """The instants at which each of the `rates` has carried its ``bits`` since ``start_s``, [n]."""


class BandLink(Link, SharedLink, Protocol):
    """The uplink of a station over a band, reserved or shared anew."""


@dataclass(frozen=True)
class ShannonLink(Known):
    """Rate B log2(1 + p / (B n)), at most ``max_bps_per_hz`` times B: FedTeddi, section III-B2 and eq. 14."""

    noise_w_per_hz: float
    """n: noise density of the receiver times the environment's SNR gap, in W/Hz."""
    max_bps_per_hz: float = math.inf
    """Highest spectral efficiency of the modulation and coding; inf without a cap."""

    def least_hz(
        self, ids: Integers, bits: Floats, start_s: Floats, end_s: float, rx_power_w: Floats, origin_s: float
    ) -> Floats:
        """Least bandwidths by Lambert W and by the cap, [n]."""
        return min_bandwidth_hz(bits, end_s - start_s, rx_power_w, self.noise_w_per_hz, self.max_bps_per_hz)

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Rate times airtime."""
        return self._rate_bps(bandwidth_hz, rx_power_w) * (end_s - start_s) if bandwidth_hz else 0.0

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Start plus bits over rate; inf at 0 Hz."""
        if bandwidth_hz == 0:
            return math.inf
        return start_s + bits / self._rate_bps(bandwidth_hz, rx_power_w)

    def mean_bps(self, ids: Integers, bandwidth_hz: float, rx_power_w: Floats, start_s: float, end_s: float) -> Floats:
        """The rate, which is the same at all instants, [n]."""
        return rate_bps(bandwidth_hz, rx_power_w, self.noise_w_per_hz, self.max_bps_per_hz)

    def rates(self, bandwidth_hz: Floats, rx_power_w: Floats) -> Floats:
        """Bits per second, [n]."""
        # Not by `rate_bps`, which also answers for 0 Hz: bands are shared anew up to twice for each upload.
        shannon_bps = bandwidth_hz * np.log1p(rx_power_w / (bandwidth_hz * self.noise_w_per_hz)) / _LN2
        if math.isinf(self.max_bps_per_hz):
            return shannon_bps
        return np.minimum(shannon_bps, self.max_bps_per_hz * bandwidth_hz)

    def bits_each(self, rates: Floats, start_s: float, end_s: float) -> Floats:
        """Rates times airtime, [n]."""
        return rates * (end_s - start_s)

    def end_each_s(self, rates: Floats, bits: Floats, start_s: float) -> Floats:
        """Start plus bits over rates, [n]."""
        return start_s + bits / rates

    def _rate_bps(self, bandwidth_hz: float, rx_power_w: float) -> float:
        shannon_bps = bandwidth_hz * math.log1p(rx_power_w / (bandwidth_hz * self.noise_w_per_hz)) / _LN2
        cap_bps = self.max_bps_per_hz * bandwidth_hz
        return shannon_bps if shannon_bps <= cap_bps else cap_bps


@dataclass(frozen=True, eq=False)
class RecordedLink:
    """A band whose whole capacity C(t) was recorded: an upload with b of its B hertz is carried at C(t) b / B."""

    capacity: CapacityTables
    bandwidth_hz: float
    """B, the whole band."""
    is_endless: ClassVar[bool] = False

    def least_hz(
        self, ids: Integers, bits: Floats, start_s: Floats, end_s: float, rx_power_w: Floats, origin_s: float
    ) -> Floats:
        """B bits / (integral of C from start to end), [n]; may exceed B; inf where the integral is 0."""
        self.capacity.need_known(0, origin_s)
        late = start_s >= end_s
        first_s = origin_s + np.where(late, end_s, start_s)
        whole = self.capacity.bits_between(0, first_s, origin_s + end_s)
        with np.errstate(divide="ignore", invalid="ignore"):
            need_hz = self.bandwidth_hz * bits / whole
        return np.where(late | (whole <= 0), np.inf, need_hz)

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """The upload's part of what the band carried."""
        return bandwidth_hz / self.bandwidth_hz * float(self.capacity.bits_between(0, start_s, end_s))

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Instant at which the upload's part of the integral of C reaches its bits; inf at 0 Hz."""
        if bandwidth_hz == 0:
            return math.inf
        return float(self.capacity.end_s(0, bits * (self.bandwidth_hz / bandwidth_hz), start_s))

    def rates(self, bandwidth_hz: Floats, rx_power_w: Floats) -> Floats:
        """The bandwidths themselves, which say what parts of the band they are, [n]."""
        return bandwidth_hz

    def bits_each(self, rates: Floats, start_s: float, end_s: float) -> Floats:
        """The uploads' parts of what the band carried, [n]."""
        return rates / self.bandwidth_hz * float(self.capacity.bits_between(0, start_s, end_s))

    def end_each_s(self, rates: Floats, bits: Floats, start_s: float) -> Floats:
        """Instants at which the uploads' parts of the integral of C reach their bits, [n]."""
        return self.capacity.end_s(0, bits * (self.bandwidth_hz / rates), start_s)

    def mean_bps(self, ids: Integers, bandwidth_hz: float, rx_power_w: Floats, start_s: float, end_s: float) -> Floats:
        """The upload's part of the mean capacity, independent of the received power, [n]."""
        known_s = min(end_s, float(self.capacity.until_s[0])) - start_s if not self.capacity.wraps else end_s - start_s
        mean = self.bits(0, bandwidth_hz, 0.0, start_s, end_s) / known_s if known_s > 0 else 0.0
        return np.full(len(rx_power_w), mean)

    def known_until_s(self, device: int) -> float:
        """The end of the recording."""
        return float(self.capacity.known_until_s(0))

    def need_known(self, device: int, now_s: float) -> None:
        """Raise `EdgesimError` at the end of the recording."""
        self.capacity.need_known(0, now_s)


@dataclass(frozen=True, eq=False)
class OwnLinks(Known):
    """Every device has a link of its own, of one recorded rate: no band is shared, and none is needed."""

    rate_bps: Floats
    """Rate of each device of the run, [N]."""

    def least_hz(
        self, ids: Integers, bits: Floats, start_s: Floats, end_s: float, rx_power_w: Floats, origin_s: float
    ) -> Floats:
        """0 where the link carries the bits in time, inf where it does not, [n]."""
        return np.where(start_s + bits / self.rate_bps[ids] <= end_s, 0.0, np.inf)

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Rate times airtime."""
        return float(self.rate_bps[device]) * (end_s - start_s)

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Start plus bits over rate."""
        return start_s + bits / float(self.rate_bps[device])

    def mean_bps(self, ids: Integers, bandwidth_hz: float, rx_power_w: Floats, start_s: float, end_s: float) -> Floats:
        """The rates, [n]."""
        return self.rate_bps[ids]


@dataclass(frozen=True, eq=False)
class RecordedOwnLinks:
    """Every device has a link of its own, whose capacity over time was recorded: no band is shared or needed."""

    capacity: CapacityTables
    """Link k is that of device k of the run."""
    is_endless: ClassVar[bool] = False

    def least_hz(
        self, ids: Integers, bits: Floats, start_s: Floats, end_s: float, rx_power_w: Floats, origin_s: float
    ) -> Floats:
        """0 where the integral of the link's capacity from start to end reaches the bits, inf where not, [n]."""
        self.capacity.need_known(ids, origin_s)
        late = start_s >= end_s
        first_s = origin_s + np.where(late, end_s, start_s)
        sent_bits = self.capacity.bits_between(ids, first_s, origin_s + end_s)
        return np.where(~late & (sent_bits >= bits * NEARLY), 0.0, np.inf)

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """The integral of the capacity."""
        return float(self.capacity.bits_between(device, start_s, end_s))

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Instant at which the integral of the capacity reaches the bits."""
        return float(self.capacity.end_s(device, bits, start_s))

    def mean_bps(self, ids: Integers, bandwidth_hz: float, rx_power_w: Floats, start_s: float, end_s: float) -> Floats:
        """The mean capacities, [n]."""
        until_s = end_s if self.capacity.wraps else np.minimum(end_s, self.capacity.until_s[ids])
        sent_bits = self.capacity.bits_between(ids, start_s, end_s)
        return np.where(until_s > start_s, sent_bits / np.maximum(until_s - start_s, 1e-300), 0.0)

    def known_until_s(self, device: int) -> float:
        """The end of the device's recording."""
        return float(self.capacity.known_until_s(device))

    def need_known(self, device: int, now_s: float) -> None:
        """Raise `EdgesimError` at the end of the device's recording."""
        self.capacity.need_known(device, now_s)
