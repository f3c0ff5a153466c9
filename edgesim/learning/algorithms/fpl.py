"""Federated prototype learning: Huang et al., "Rethinking Federated Learning with Domain Shift", CVPR 2023.

Beside its model the server sends prototypes, the mean features that devices found for each class, those that are alike
as one cluster: features are drawn towards the prototypes of their class and away from all others.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.finch import finch
from edgesim.learning.algorithms.prototypes import MergesPrototypes, Senders, SendsPrototypes, held, senders
from edgesim.learning.algorithms.records import Arrivals, Devices, State, Step, Workbench
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.torch_types import F, Tensor, torch


class FplOptions(AveragingOptions):
    """Options of FPL."""

    tau: Factor = Field(0.02, gt=0)
    """Temperature of the contrast between prototypes."""
    upcr: Literal["mean", "sum"] = "mean"
    """Reduction over features of a sample's squared distance to its class's unbiased prototype: the paper sums, its
    program and DPFL's take the mean."""


class FplLocal(SendsPrototypes):
    """Local training with two terms of prototypes in the objective."""

    @override
    def loss(self, step: Step) -> Tensor:
        """Cross-entropy plus the mean of `_terms` over the samples whose class has prototypes, [n]."""
        table = step.given["prototypes"]
        has = held(table).any(-1)[step.labels].to(step.own.logits)
        counted = (step.share * has).sum().clamp(min=1e-30)
        return super().loss(step) + has / counted * self._terms(step, table)

    def _terms(self, step: Step, table: Tensor) -> Tensor:
        """Contrast plus squared distance of each sample's features z, [n].

        The contrast is -log of the share of the sample's class in the sum of e^(cos(z, c) / tau) over all clusters c;
        the distance is that to the class's unbiased prototype, the mean of its clusters.
        """
        z, there = step.own.features, held(table)
        rows = table.nan_to_num()
        # One product of matrices: pairs of samples and clusters one by one would take most of a step.
        cosines = F.normalize(z) @ F.normalize(rows, dim=-1).flatten(0, 1).T
        alike = cosines.reshape(len(z), *there.shape) / self.options.tau
        # Finite, so that rows which are not there have a gradient of 0 and not of NaN.
        nothing = torch.finfo(z.dtype).min / 4
        alike = alike.where(there, alike.new_tensor(nothing))
        own = alike.gather(1, step.labels[:, None, None].expand(-1, 1, alike.shape[2]))[:, 0]
        contrast = alike.flatten(1).logsumexp(1) - own.logsumexp(1)
        unbiased = rows.sum(1) / there.sum(1, keepdim=True).clamp(min=1)
        square = (z - unbiased[step.labels]).square()
        terms: Tensor = contrast + (square.mean(1) if self.options.upcr == "mean" else square.sum(1))
        return terms


class FplServer(MergesPrototypes):
    """FedAvg's server, which clusters prototypes."""

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Senders) -> Floats:
        """The model and the prototypes of all clusters, [n]."""
        model = super().download_bits(devices, round, ledger)
        return model + BITS_PER_PARAMETER * self.sizes.features * ledger.prototypes_sent

    @override
    def start(self, weights: Tensor, bench: Workbench) -> State:
        """A state without prototypes: a row of NaN for each class, [C, 1, F]."""
        return State(weights, {"prototypes": weights.new_full((self.sizes.classes, 1, self.sizes.features), np.nan)})

    @override
    def merge(self, state: State, arrived: Arrivals, alpha: Floats, ledger: Senders) -> State:
        """FedAvg's model, and the clusters of the prototypes that arrived now, [C, K, F]."""
        merged = super().merge(state, arrived, alpha, ledger)
        # Of a pool `refine` makes them.
        if not len(arrived.ids) or arrived.pool is not None:
            return merged
        table = _clusters(arrived.up["prototypes"])
        ledger.clusters_found = int(held(table).sum())
        return replace(merged, shared={"prototypes": table})

    @override
    def refine(self, state: State, arrived: Arrivals, ledger: Senders, bench: Workbench) -> State:
        """The clusters of the prototypes of all devices of a pool; within one each counts by its device's share."""
        if arrived.pool is None:
            return state
        table = _clusters(arrived.pool.up["prototypes"], arrived.pool.shares)
        ledger.clusters_found = int(held(table).sum())
        return replace(state, shared={"prototypes": table})

    @override
    def note(self, ledger: Senders, arrived: Arrivals) -> Floats:
        """Note the number of prototypes that the server sends with its next model.

        In timing-only runs this is a bound, half of the prototypes sent of each class: each row is in a cluster with
        the one that it is nearest to.
        """
        if len(arrived.ids):
            ledger.counts = senders(arrived)
            bound = int(np.maximum(1, ledger.counts // 2)[ledger.counts > 0].sum())
            ledger.prototypes_sent = bound if ledger.clusters_found is None else ledger.clusters_found
            ledger.clusters_found = None
        return super().note(ledger, arrived)


class Fpl(Algorithm):
    """FedAvg with two terms of prototypes in the local objective."""

    Options = FplOptions
    Local = FplLocal
    Server = FplServer
    needs = frozenset({"joint merges", "known downloads"})


def _clusters(sent: Sequence[Tensor], shares: Floats | None = None) -> Tensor:
    """Means of the clusters of each class's prototypes, [C, K, F], of the tables of S devices, [S] of [C, F].

    With ``shares`` [S] of the devices means are weighted by these.
    """
    every = torch.stack(list(sent), 1)
    weights = None if shares is None else every.new_tensor(shares)
    means = []
    for rows in every:
        has = held(rows)
        there = rows[has]
        cluster = finch(there.cpu().numpy()) if len(there) else np.empty(0, dtype=np.int64)
        members = [np.flatnonzero(cluster == number) for number in range(cluster.max(initial=-1) + 1)]
        if weights is None:
            centres = [there[own].mean(0) for own in members]
        else:
            centres = [weights[has][own] @ there[own] / weights[has][own].sum() for own in members]
        means.append(torch.stack(centres) if centres else rows.new_full((1, rows.shape[1]), torch.nan))
    most = max(len(own) for own in means)
    return torch.stack([torch.cat([own, own.new_full((most - len(own), own.shape[1]), torch.nan)]) for own in means])
