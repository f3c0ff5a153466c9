"""The physical world of one run: who is where, hears what, computes how fast and is there when."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgesim.channels import Environment, mean_power_gain
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
        )

    def rx_power_w(self, ids: Integers, round: int) -> Floats:
        """Average received power of each device in a round, [n]."""
        return self.population.tx_power_w[ids] * self.gain(ids, round)

    def compute_s(self, ids: Integers, round: int, samples: Integers) -> Floats:
        """This round's compute delays for the samples each device processes, [n]."""
        rows = self.population
        return compute_delay_s(rows.a_s[ids], rows.mu_per_s[ids], samples, self.streams, ids, round)

    def planned_compute_s(self, ids: Integers, samples: Integers, quantile: float) -> Floats:
        """Quantile of each device's delay law for the samples it processes, [n]."""
        rows = self.population
        return compute_delay_quantile_s(rows.a_s[ids], rows.mu_per_s[ids], samples, quantile)
