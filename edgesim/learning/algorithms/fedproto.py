"""Federated prototype learning across heterogeneous clients: Tan et al., "FedProto", AAAI 2022.

Devices send prototypes, the mean features of the classes that they hold, and get the server's mean of these: features
are drawn towards the prototype of their class. Each device trains a model of its own, unless ``average_weights``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.own_models import WITHOUT_MODELS
from edgesim.learning.algorithms.prototypes import MergesPrototypes, Senders, SendsPrototypes, held, senders
from edgesim.learning.algorithms.records import Arrivals, Devices, Outputs, State, Step, Workbench
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.torch_types import Tensor, torch


class FedProtoOptions(AveragingOptions):
    """Options of FedProto."""

    strength: Factor = Field(1.0, ge=0)
    """lambda: weight of the squared distance to the prototype in the loss."""
    average_weights: bool = False
    """Whether weights are sent and averaged as well, as FedAvg does; else each device has a model of its own."""
    proto_weights: Literal["equal", "samples"] = "equal"
    """Weights of devices in the mean prototype of a class: equal (the paper's program), or by their samples of it."""
    stale_prototypes: bool = False
    """Whether a class that no device of a round holds keeps its last prototype; else it has none."""

    @property
    @override
    def sends_models(self) -> bool:
        return self.average_weights


class FedProtoLocal(SendsPrototypes):
    """Features are drawn to prototypes; a sample is of the class whose prototype is nearest to its features."""

    @override
    def loss(self, step: Step) -> Tensor:
        """Cross-entropy plus lambda times the mean over features of (z - prototype)^2, [n] (eq. 7).

        A sample whose class has no prototype has no such term.
        """
        own, features = step.given["prototypes"][step.labels], step.own.features
        distance = (features - own.nan_to_num()).square().mean(-1)
        term: Tensor = self.options.strength * distance * held(own)
        return super().loss(step) + term

    @override
    def scores(self, outputs: Outputs, shared: Mapping[str, Tensor]) -> Tensor:
        """Minus the squared distances to the prototypes, [n, C]; logits as long as no class has one."""
        table = shared["prototypes"]
        there = held(table)
        if not bool(there.any()):
            return outputs.logits
        distances = (outputs.features[:, None] - table.nan_to_num()).square().sum(-1)
        return (-distances).where(there, -np.inf)


class FedProtoServer(MergesPrototypes):
    """Server that averages prototypes and, if they travel, models."""

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Senders) -> Floats:
        """The prototypes of all classes that have one, [n], and the model if it travels."""
        model = super().download_bits(devices, round, ledger)
        return model + BITS_PER_PARAMETER * self.sizes.features * np.count_nonzero(ledger.counts)

    @override
    def start(self, weights: Tensor, bench: Workbench) -> State:
        """A state without prototypes: a row of NaN for each class, [C, F]."""
        return State(weights, {"prototypes": weights.new_full((self.sizes.classes, self.sizes.features), np.nan)})

    @override
    def merge(self, state: State, arrived: Arrivals, alpha: Floats, ledger: Senders) -> State:
        """The means of the prototypes that arrived now (eq. 6), and FedAvg's model if models travel."""
        merged = super().merge(state, arrived, alpha, ledger)
        # Of a pool `refine` makes them.
        if not len(arrived.ids) or arrived.pool is not None:
            return merged
        sent = torch.stack(list(arrived.up["prototypes"]))
        by_samples = self.options.proto_weights == "samples"
        means = _means(sent, sent.new_tensor(arrived.class_counts) if by_samples else sent.new_ones(()))
        if self.options.stale_prototypes:
            means = means.where(held(means)[:, None], state.shared["prototypes"])
        return replace(merged, shared={"prototypes": means})

    @override
    def refine(self, state: State, arrived: Arrivals, ledger: Senders, bench: Workbench) -> State:
        """The means of the prototypes of all devices of a pool, by their shares."""
        if arrived.pool is None:
            return state
        sent = torch.stack(list(arrived.pool.up["prototypes"]))
        return replace(state, shared={"prototypes": _means(sent, sent.new_tensor(arrived.pool.shares)[:, None])})

    @override
    def note(self, ledger: Senders, arrived: Arrivals) -> Floats:
        """Note the number of senders of each class's prototype."""
        if len(arrived.ids):
            counts = senders(arrived)
            stale = self.options.stale_prototypes
            ledger.counts = np.where((counts == 0) & stale, ledger.counts, counts)
        return super().note(ledger, arrived)


class FedProto(Algorithm):
    """Prototypes of classes that travel."""

    Options = FedProtoOptions
    Local = FedProtoLocal
    Server = FedProtoServer
    needs = frozenset({"joint merges", "merges in all rounds", "frames from the last model"})
    rules = WITHOUT_MODELS


def _means(sent: Tensor, weights: Tensor) -> Tensor:
    """Means of the prototypes of each class, [C, F], of those that S devices sent, [S, C, F]; NaN for a class without.

    ``weights`` are [S, C], [S, 1] or one number.
    """
    counts = held(sent).to(sent) * weights
    means: Tensor = (counts[..., None] * sent.nan_to_num()).sum(0) / counts.sum(0)[:, None]
    return means
