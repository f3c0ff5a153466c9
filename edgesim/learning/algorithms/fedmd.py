"""FedMD: Li and Wang, "Heterogenous Federated Learning via Model Distillation", 2019, with one exchange a round.

Devices send the logits of some public images and get the mean of these, the consensus, towards which each draws its own
logits before it trains on its own data. Each device trains a model of its own, unless ``average_weights``.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import Rule
from edgesim.base.quantities import Count
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.own_models import WITHOUT_MODELS
from edgesim.learning.algorithms.records import (
    Arrivals,
    Device,
    Devices,
    Phase,
    Samples,
    Sent,
    Sizes,
    State,
    Step,
    Trained,
    Workbench,
)
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.torch_types import F, Tensor, torch


class FedMdOptions(AveragingOptions):
    """Options of FedMD."""

    digest_epochs: Count = Field(1, ge=1)
    """E_d: epochs on the consensus in each job."""
    digest_batch: Count | None = Field(None, ge=1)
    """Images of a step on the consensus; as many as in a device's own training when absent."""
    public_subset: Literal["round", "fixed"] = "round"
    """Whether each round has public images of its own, or all rounds have the same."""
    public_share: float = Field(0.1, gt=0, le=1)
    """M: public images of a round, as a share of the devices' samples together; all, if there are fewer."""
    average_weights: bool = False
    """Whether weights are sent and averaged as well, as FedAvg does; else each device has a model of its own."""
    public_epochs: Count = Field(20, ge=0)
    """Epochs on all public images and their labels with which the server trains the model that all begin with."""
    own_epochs: Count | None = Field(None, ge=0)
    """Epochs on its own data with which a device that has a model of its own begins its first job, in no simulated
    time; 25 when absent."""

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, given: dict[str, Any]) -> dict[str, Any]:
        return given if given.get("average_weights") else {"own_epochs": 25} | given

    @property
    @override
    def sends_models(self) -> bool:
        return self.average_weights


@dataclass
class Consensus:
    """Origin of the consensus: its round and the devices behind it, without its values."""

    ever_merged: Booleans
    """Devices of which an update was ever merged, [N]."""
    round: int = 0
    """Round that made the consensus; 0 before there is one."""
    of_one: int | None = None
    """Device whose logits alone are the consensus, made by the model that the device has now or, where models travel,
    that all have; None where there is no such device."""


class FedMdLocal(LocalHalf):
    """Devices send logits of public images, and learn their consensus."""

    @override
    def begin(self, devices: Devices, round: int, ledger: Consensus) -> None:
        """Nothing to note: a device digests the consensus that there is when it begins."""

    @override
    def upload_bits(self, devices: Devices, round: int, ledger: Consensus) -> Floats:
        """The logits of the round's subset, [n], and the update if it travels."""
        return super().upload_bits(devices, round, ledger) + _logit_bits(self)

    @override
    def compute_factor(self, devices: Devices, samples: Integers, round: int, ledger: Consensus) -> Floats:
        """1 + (3 E_d + 1) M / (3 E n_i), [n]; without the digest, 3 E_d, for devices that have nothing to digest.

        What is trained before the first round takes no simulated time.
        """
        digest = 3 * self.options.digest_epochs * _digests(self, devices.ids, ledger)
        return np.asarray(1 + (digest + 1) * _subset_size(self.options, self.sizes) / (3 * samples))

    @override
    def phases(self, own: Phase, device: Device, samples: Samples, ledger: Consensus) -> tuple[Phase, ...]:
        """Epochs on the images of the newest consensus, if that is of other models, before those on own data.

        In the first job on a model of its own it begins with more epochs on its own data.
        """
        phases = [own]
        if _digests(self, np.array([device.id]), ledger)[0]:
            subset = samples.public[_subset(self, ledger.round)]
            phases.insert(0, samples.epochs("digest", subset, self.options.digest_epochs, self.options.digest_batch))
        if self.options.own_epochs and not ledger.ever_merged[device.id]:
            before = samples.epochs("own-training", samples.own, self.options.own_epochs, None)
            phases.insert(0, replace(before, rows=None))
        return tuple(phases)

    @override
    def loss(self, step: Step) -> Tensor:
        """Cross-entropy of own samples, mean over classes of |logits - consensus| of public ones, [n]."""
        own = super().loss(step)
        if step.rows is None:
            return own
        taught = step.given["consensus"][step.rows.clamp(min=0)]
        return own.where(step.rows < 0, (step.own.logits - taught).abs().mean(-1))

    @override
    def passes_over(self, device: Device, samples: Samples) -> Integers:
        """The images of the round's subset."""
        return samples.public[_subset(self, device.round)]

    @override
    def sent(self, trained: Trained) -> Sent:
        """The logits of the round's subset, [M, C]; the device keeps its model, if that is its own."""
        return replace(super().sent(trained), up={"logits": trained.outputs()[0].logits})


class FedMdServer(ServerHalf):
    """Server that averages logits and, if they travel, models."""

    merges = "models and more"

    @override
    def ledger(self, round: int, last: Consensus | None) -> Consensus:
        """A ledger without a consensus."""
        return last or Consensus(np.zeros(self.sizes.devices, dtype=bool))

    @override
    def note(self, ledger: Consensus, arrived: Arrivals) -> Floats:
        """Note the consensus that the round made, if any update arrived."""
        if len(arrived.ids):
            ledger.round = arrived.round
            ledger.ever_merged[arrived.ids] = True
            of = arrived.ids if arrived.pool is None else arrived.pool.ids
            ledger.of_one = int(of[0]) if len(of) == 1 and not self._is_mixed(arrived) else None
        return super().note(ledger, arrived)

    def _is_mixed(self, arrived: Arrivals) -> bool:
        """Whether models travel and the model after a merge of a single update differs from the device's own.

        A late update is added to a newer model than it started from, and a weight other than 1 takes part of it.
        """
        if not self.options.sends_models or arrived.pool is not None:
            return False
        return bool(np.any(arrived.staleness) or np.any(arrived.alpha != 1))

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Consensus) -> Floats:
        """The consensus, [n], if there is one, and the model if it travels."""
        return super().download_bits(devices, round, ledger) + _logit_bits(self) * (ledger.round > 0)

    @override
    def start(self, weights: Tensor, bench: Workbench) -> State:
        """The model that the server trains on the labelled public images; without a consensus, NaN for each, [M, C]."""
        count = _subset_size(self.options, self.sizes)
        shared = {"consensus": weights.new_full((count, self.sizes.classes), np.nan)}
        random = self.streams.generator("public-training")
        orders = [random.permutation(bench.public) for _ in range(self.options.public_epochs)]
        batches = [batch for order in orders for batch in bench.batches(order)]
        if not batches:
            return State(weights, shared)

        def loss(logits: Tensor, step: int) -> Tensor:
            return F.cross_entropy(logits, bench.labels(batches[step]))

        return State(bench.fit(weights, batches, loss), shared)

    @override
    def merge(self, state: State, arrived: Arrivals, alpha: Floats, ledger: Consensus) -> State:
        """The consensus is the plain mean of the logits that arrived; FedAvg's model if models travel."""
        merged = super().merge(state, arrived, alpha, ledger)
        # Of a pool `refine` makes it.
        if not len(arrived.ids) or arrived.pool is not None:
            return merged
        return replace(merged, shared={"consensus": torch.stack(list(arrived.up["logits"])).mean(0)})

    @override
    def refine(self, state: State, arrived: Arrivals, ledger: Consensus, bench: Workbench) -> State:
        """The state whose consensus is the mean, by shares, of all pool models' logits on the round's subset."""
        pool = arrived.pool
        if pool is None:
            return state
        batches = bench.batches(bench.public[_subset(self, bench.round)])
        consensus = torch.zeros_like(state.shared["consensus"])
        for share, model in zip(pool.shares.tolist(), pool.models, strict=True):
            logits = [outputs.logits for outputs in bench.outputs(model, batches)]
            consensus.add_(torch.cat(logits), alpha=share)
        return replace(state, shared={"consensus": consensus})


class FedMd(Algorithm):
    """Logits of public images that travel; devices learn them from each other."""

    Options = FedMdOptions
    Local = FedMdLocal
    Server = FedMdServer
    needs = frozenset(
        {"joint merges", "merges in all rounds", "public images", "data set", "frames from the last model"}
    )
    rules = (
        *WITHOUT_MODELS,
        Rule({"algorithm.average_weights": True}, {"algorithm.own_epochs": (None, 0)}, "the average takes their place"),
        Rule(
            {"algorithm.public_subset": "round"},
            {"round.late": "drop"},
            "else logits arrive that are of another round's public images; use 'fixed'",
            ("rounds",),
        ),
    )

    @classmethod
    @override
    def check(cls, options: FedMdOptions, sizes: Sizes) -> None:
        """Refuse an empty subset."""
        if not _subset_size(options, sizes):
            raise EdgesimError(
                f"algorithm.public_share = {options.public_share:g}: is less than one of {sizes.public} "
                f"images as a share of the devices' {sizes.private} samples; raise it or give devices more data",
                "algorithm.public_share",
            )

    @classmethod
    @override
    def epochs_over(cls, options: FedMdOptions, sizes: Sizes, held: Integers) -> list[tuple[int, int | None]]:
        """The subset, and the images of training before the first round."""
        before = [sizes.public] * bool(options.public_epochs) + (held.tolist() if options.own_epochs else [])
        return [(_subset_size(options, sizes), options.digest_batch), *((size, None) for size in before)]


def _subset_size(options: FedMdOptions, sizes: Sizes) -> int:
    """M: public images of a round."""
    # Up to the rounding of a share that is not exact.
    return min(sizes.public, int(options.public_share * sizes.private + 1e-9))


def _subset(half: LocalHalf | ServerHalf, round: int) -> Integers:
    """Places in the public set of the images of a round, [M], ascending."""
    turn = round if half.options.public_subset == "round" else 0
    order = half.streams.generator("public-subset", round=turn).permutation(half.sizes.public)
    return np.sort(order[: _subset_size(half.options, half.sizes)])


def _logit_bits(half: LocalHalf | ServerHalf) -> int:
    return BITS_PER_PARAMETER * _subset_size(half.options, half.sizes) * half.sizes.classes


def _digests(half: LocalHalf, ids: Integers, ledger: Consensus) -> Booleans:
    """Whether there is a consensus of other models than each device's own, [n].

    Of its own model |logits - consensus| is noise of rounding, whose sign would make a full step.
    """
    if ledger.of_one is None:
        return np.full(len(ids), ledger.round > 0)
    return np.asarray((ids != ledger.of_one) & (not half.options.sends_models))
