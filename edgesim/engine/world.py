"""The physical world of one run: places, radio, computing speeds and availability of its devices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.config import RunConfig
from edgesim.devices.compute import compute_delay_quantile_s, compute_delay_s
from edgesim.devices.population import Population
from edgesim.devices.topology import ONE_STATION, Topology
from edgesim.radio.environment import Environment, RecordedEnvironment
from edgesim.radio.fading import Fading, outage_factor, power_factor
from edgesim.radio.link import BandLink, Link
from edgesim.selection.column import Column
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.search import Search


@dataclass(frozen=True)
class World:
    """Everything that does not depend on the policy; each method is a pure function of device and round.

    Where work is not done in rounds, ``round`` is the number of each device's task, [n].
    """

    config: RunConfig
    streams: Streams
    population: Population
    environment: Environment | RecordedEnvironment
    availability: Availability
    topology: Topology = ONE_STATION
    own_links: Link | None = None
    """The links that devices do not share; None where stations have bands."""
    search: Search = field(default_factory=Search)
    """Limits of the server's search for the next available devices."""
    _gains: dict[int, Column] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Average gains of all devices in the round looked at last, [N]; planning and sending ask for them in turn."""

    @cached_property
    def bands_hz(self) -> Floats:
        """Uplink band of each station, [M]."""
        return self.config.radio.bandwidth_hz * self.topology.bandwidth_share

    @cached_property
    def band_links(self) -> Sequence[BandLink]:
        """Link over the band of each station, [M]."""
        return self.environment.links(self.bands_hz)

    @cached_property
    def links(self) -> Sequence[Link]:
        """Link of the uploads to each station, [M]."""
        return self.band_links if self.own_links is None else [self.own_links] * len(self.bands_hz)

    def gain(self, ids: Integers, round: int | Integers) -> Floats:
        """Average power gain (path loss and shadowing) of each device to its station in a round, linear, [n].

        1 where only the capacity of the band is known.
        """
        if not self.environment.has_path_loss:
            return np.ones(len(ids))
        if not isinstance(round, int):
            return self._drawn_gain(ids, round)
        if round not in self._gains:
            self._gains.clear()
            self._gains[round] = Column(len(self.population), lambda rows: self._drawn_gain(rows, round))
        return np.asarray(self._gains[round][ids])

    def _drawn_gain(self, ids: Integers, round: int | Integers) -> Floats:
        gain = np.empty(len(ids))
        for station, rows in self.by_station(ids):
            there, drawn_in = ids[rows], round if isinstance(round, int) else round[rows]
            distance_m, los = self.population.distance_m[there], self._sees_station[there]
            gain[rows] = self.environment.mean_power_gain(distance_m, self.streams, there, drawn_in, station, los)
        return gain

    def by_station(self, ids: Integers) -> Iterator[tuple[int, Integers | slice]]:
        """Yield each station that serves some of the devices [n], with the positions of these devices."""
        if len(self.bands_hz) == 1:
            yield 0, slice(None)
            return
        station = self.population.station[ids]
        for number in np.unique(station).tolist():
            yield number, np.flatnonzero(station == number)

    @cached_property
    def _sees_station(self) -> Booleans:
        """Whether every device of the run has line of sight, [N]; cached: it takes many draws."""
        distance_m = self.population.distance_m
        everyone = np.arange(len(distance_m))
        sees = np.empty(len(distance_m), dtype=bool)
        for station, rows in self.by_station(everyone):
            sees[rows] = self.environment.line_of_sight(distance_m[rows], self.streams, everyone[rows], station)
        return sees

    def rx_power_w(self, ids: Integers, round: int | Integers) -> Floats:
        """Average received power of each device in a round, [n], in W."""
        return self.population.tx_power_w[ids] * self.gain(ids, round)

    @cached_property
    def fading(self) -> Fading:
        """Law by which uploads fade; ``none`` for a recorded capacity, which contains it."""
        return self.environment.fading

    @cached_property
    def outage_factor(self) -> float:
        """Share of the average gain that uploads are planned on."""
        outage = self.config.round.outage
        return 1.0 if outage is None else outage_factor(self.fading, outage)

    def planned_rx_power_w(self, ids: Integers, round: int | Integers) -> Floats:
        """Received power that the scheduler plans each device's upload of a round on, [n].

        The average, or with ``round.outage`` what fading falls below with that probability.
        """
        return self.rx_power_w(ids, round) * self.outage_factor

    def drawn_rx_power_w(self, ids: Integers, round: int | Integers) -> Floats:
        """Received power of each device's upload in a round, [n], in W: the average times its fading."""
        return self.rx_power_w(ids, round) * power_factor(self.fading, self.streams, ids, round)

    def download_s(self, ids: Integers, bits: Floats, model_bits: float) -> Floats:
        """Seconds that each device takes to download ``bits``, [n]; ``round.download_s`` is the time of one model's."""
        if self.config.round.download_s != "link":
            return np.asarray(self.config.round.download_s * (bits / model_bits))
        assert self.population.link_bps is not None
        return np.asarray(bits / self.population.link_bps[ids])

    def compute_s(self, ids: Integers, round: int | Integers, samples: Floats) -> Floats:
        """Draw the compute delay of each device in a round for the samples that it is charged for, [n], in seconds."""
        rows = self.population
        return compute_delay_s(rows.a_s[ids], rows.mu_per_s[ids], samples, self.streams, ids, round)

    def planned_compute_s(self, ids: Integers, samples: Floats, quantile: float) -> Floats:
        """Quantile of each device's compute delay for the samples that it is charged for, [n], in seconds."""
        rows = self.population
        return compute_delay_quantile_s(rows.a_s[ids], rows.mu_per_s[ids], samples, quantile)
