"""The physical world of one run: who is where, hears what, computes how fast and is there when."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edgesim.channels import Environment, line_of_sight, mean_power_gain, power_factor
from edgesim.config import RunConfig
from edgesim.devices.compute import compute_delay_quantile_s, compute_delay_s
from edgesim.devices.population import Population
from edgesim.streams import Streams
from edgesim.traces.availability import Availability

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """Everything that does not depend on the policy; each method is a pure function of device and round."""

    config: RunConfig
    streams: Streams
    population: Population
    environment: Environment
    availability: Availability

    def gain(self, ids: Integers, round: int) -> Floats:
        """Average power gain (path loss and shadowing) of each device in a round, linear, [n]."""
        return mean_power_gain(
            self.environment,
            self.population.distance_m[ids],
            self.streams,
            ids,
            round,
            shadowing=self.config.radio.shadowing,
            los=self._sees_station[ids],
        )

    @cached_property
    def _sees_station(self) -> NDArray[np.bool_]:
        """Line of sight of every device of the run, [N]; kept, since it costs as many draws as the shadowing."""
        distance_m = self.population.distance_m
        return line_of_sight(self.environment.path_loss, distance_m, self.streams, np.arange(len(distance_m)))

    def rx_power_w(self, ids: Integers, round: int) -> Floats:
        """Average received power of each device in a round, [n]."""
        return self.population.tx_power_w[ids] * self.gain(ids, round)

    def drawn_rx_power_w(self, ids: Integers, round: int) -> Floats:
        """Received power that each device's upload of a round lives with: the average times its fading, [n]."""
        fading = self.config.radio.fading or self.environment.fading
        return self.rx_power_w(ids, round) * power_factor(fading, self.streams, ids, round)

    def compute_s(self, ids: Integers, round: int, samples: Integers) -> Floats:
        """This round's compute delays for the samples each device processes, [n]."""
        rows = self.population
        return compute_delay_s(rows.a_s[ids], rows.mu_per_s[ids], samples, self.streams, ids, round)

    def planned_compute_s(self, ids: Integers, samples: Integers, quantile: float) -> Floats:
        """Quantile of each device's delay law for the samples it processes, [n]."""
        rows = self.population
        return compute_delay_quantile_s(rows.a_s[ids], rows.mu_per_s[ids], samples, quantile)
