"""The physical world of one run: places, radio, computing speeds and availability of its devices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.config import RunConfig
from edgesim.devices.compute import compute_delay_quantile_s, compute_delay_s
from edgesim.devices.event_a3 import EventA3
from edgesim.devices.places import Places
from edgesim.devices.population import Population
from edgesim.devices.topology import ONE_STATION, Topology
from edgesim.engine.moving_places import MovingPlaces
from edgesim.radio.environment import Environment, RecordedEnvironment
from edgesim.radio.fading import Fading, outage_factor, power_factor
from edgesim.radio.link import BandLink, Link
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.search import Search


@dataclass(frozen=True)
class World:
    """Everything that does not depend on the policy; each method is a pure function of device, draws and instant.

    ``draws`` are the numbers of random draws: the round or, without rounds, that of each device's task, [n].
    """

    config: RunConfig
    streams: Streams
    population: Population
    places: Places
    environment: Environment | RecordedEnvironment
    availability: Availability
    topology: Topology = ONE_STATION
    own_links: Link | None = None
    """The links that devices do not share; None where stations have bands."""
    search: Search = field(default_factory=Search)
    """Limits of the server's search for the next available devices."""
    moving: MovingPlaces | None = None
    """The places of devices that move; None where they stand still."""

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

    @cached_property
    def handover_rule(self) -> EventA3:
        """When devices leave the cells of their stations."""
        knobs = self.config.handover
        return EventA3() if knobs is None else EventA3(knobs.hysteresis_db, knobs.offset_db, knobs.trigger_s)

    @cached_property
    def merges_where_started(self) -> bool:
        """Whether updates go to the edge servers from whose models they began, wherever their devices are by then."""
        return self.config.handover is not None and self.config.handover.merge == "where_started"

    def gain(self, ids: Integers, draws: int | Integers, t_s: float, station: Integers) -> Floats:
        """Average power gain (path loss and shadowing) of each device at an instant to its station, linear, [n].

        1 where only the capacity of the band is known.
        """
        if self.moving is not None:
            return self.moving.gain(ids, draws, t_s, station)
        if not self.environment.has_path_loss:
            return np.ones(len(ids))
        gain, distance_m = np.empty(len(ids)), self.places.distances_m(ids, t_s)
        for number, rows in self.by_station(station):
            there, drawn_in = ids[rows], draws if isinstance(draws, int) else draws[rows]
            link = distance_m[rows], self.streams, there, drawn_in, number, self._sees_station[there]
            gain[rows] = self.environment.mean_power_gain(*link)
        return gain

    def by_station(self, station: Integers) -> Iterator[tuple[int, Integers | slice]]:
        """Yield each one of some stations [n] with its positions among them."""
        if len(self.bands_hz) == 1:
            yield 0, slice(None)
            return
        for number in np.unique(station).tolist():
            yield number, np.flatnonzero(station == number)

    @cached_property
    def _sees_station(self) -> Booleans:
        """Whether every device of the run has line of sight, [N]; cached: it takes many draws."""
        everyone = np.arange(len(self.population))
        sees, distance_m = np.empty(len(everyone), dtype=bool), self.places.distances_m(everyone, 0.0)
        for station, rows in self.by_station(self.places.stations(everyone, 0.0)):
            sees[rows] = self.environment.line_of_sight(distance_m[rows], self.streams, everyone[rows], station)
        return sees

    def rx_power_w(self, ids: Integers, gain: Floats) -> Floats:
        """Average received power of each device with a gain [n], [n], in W."""
        return self.population.tx_power_w[ids] * gain

    @cached_property
    def fading(self) -> Fading:
        """Law by which uploads fade; ``none`` for a recorded capacity, which contains it."""
        return self.environment.fading

    @cached_property
    def outage_factor(self) -> float:
        """Share of the average gain that uploads are planned on."""
        outage = self.config.round.outage
        return 1.0 if outage is None else outage_factor(self.fading, outage)

    def drawn_rx_power_w(self, ids: Integers, draws: int | Integers, gain: Floats) -> Floats:
        """Received power of each device's upload with an average gain [n], [n], in W: the average times fading."""
        return self.rx_power_w(ids, gain) * power_factor(self.fading, self.streams, ids, draws)

    def download_s(self, ids: Integers, bits: Floats, model_bits: float) -> Floats:
        """Seconds that each device takes to download ``bits``, [n]; ``round.download_s`` is the time of one model's."""
        if self.config.round.download_s != "link":
            return np.asarray(self.config.round.download_s * (bits / model_bits))
        assert self.population.link_bps is not None
        return np.asarray(bits / self.population.link_bps[ids])

    def compute_s(self, ids: Integers, draws: int | Integers, samples: Floats) -> Floats:
        """Draw the compute delay of each device for the samples that it is charged for, [n], in seconds."""
        rows = self.population
        return compute_delay_s(rows.a_s[ids], rows.mu_per_s[ids], samples, self.streams, ids, draws)

    def planned_compute_s(self, ids: Integers, samples: Floats, quantile: float) -> Floats:
        """Quantile of each device's compute delay for the samples that it is charged for, [n], in seconds."""
        rows = self.population
        return compute_delay_quantile_s(rows.a_s[ids], rows.mu_per_s[ids], samples, quantile)
