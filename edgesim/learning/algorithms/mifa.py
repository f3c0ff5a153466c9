"""MIFA: Gu et al., "Fast Federated Learning in the Presence of Arbitrary Device Unavailability", NeurIPS 2021.

The server remembers the last update of every device and applies all of them in every round, so that a device that is
away still counts.
"""

from dataclasses import dataclass, field

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.needs import Rule
from edgesim.learning.algorithms.algorithm import Algorithm, Options
from edgesim.learning.algorithms.records import Arrivals, State, Workbench
from edgesim.learning.algorithms.server_half import EQUAL, ServerHalf, whole, with_mean_buffers
from edgesim.learning.algorithms.staleness import without_age
from edgesim.learning.torch_types import Tensor


class MifaOptions(Options):
    """Options of MIFA."""

    wait: bool = False
    """Whether the model is not changed until every device of the run has been merged once."""


@dataclass
class UpdateTable(State):
    """The model, and the memory of all devices."""

    entries: dict[int, Tensor] = field(default_factory=dict)
    """G_i = (start weights - trained weights) / lr of each device merged so far, [trainable]; zero for all others."""


class MifaServer(ServerHalf):
    """Server whose step in each round is the mean of the last updates of all devices."""

    weighs_by = EQUAL

    stored = ("trainable",)

    @override
    def weigh(self, arrived: Arrivals) -> Floats:
        """Weight of each update in the step of round t, [S]: eta_t / (eta_tau N) if trained in round tau."""
        return np.asarray(arrived.round_lr / arrived.lr / self.sizes.devices)

    @override
    def start(self, weights: Tensor, bench: Workbench) -> UpdateTable:
        """A memory without updates."""
        return UpdateTable(weights)

    @override
    def merge(self, state: UpdateTable, arrived: Arrivals, alpha: Floats, ledger: None) -> UpdateTable:
        """w - eta_t times the mean over all N devices of G_i, those of this round replaced (Algorithm 1).

        The weights ``alpha`` of the protocol have no effect. Buffers take the plain mean of those merged.
        """
        trainable = self.sizes.parameters
        entries = dict(state.entries)
        for device, update, lr in zip(arrived.ids.tolist(), arrived.separate, arrived.lr.tolist(), strict=True):
            entries[device] = whole(update[:trainable]).div_(-lr)
        if self.options.wait and len(entries) < self.sizes.devices:
            return UpdateTable(state.weights, entries=entries)
        total = state.weights.new_zeros(trainable)
        # Ascending ids: the floating-point sum must not depend on the order of arrival.
        for device in sorted(entries):
            total += entries[device]
        moved = state.weights[:trainable] - arrived.round_lr / self.sizes.devices * total
        return UpdateTable(with_mean_buffers(moved, arrived), entries=entries)


class Mifa(Algorithm):
    """FedAvg with a server that remembers all updates."""

    Options = MifaOptions
    Server = MifaServer
    halves = frozenset({"server"})
    needs = frozenset({"joint merges", "frames from the last model", "updates without residuals"})
    rules = (
        Rule({}, {"round.protocol_options.server_lr": (None, 1)}, "it steps by the devices' learning rate"),
        without_age({}, "it takes each device's last update in full, whatever its age"),
    )
