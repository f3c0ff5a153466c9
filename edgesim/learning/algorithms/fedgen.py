"""FedGen: Zhu, Hong and Zhou, "Data-Free Knowledge Distillation for Heterogeneous Federated Learning", ICML 2021.

The server trains a generator of latents that the devices' last layers together classify as the class asked for. The
generator is sent with the model, and devices train their last layers on latents of all classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Count, Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.distillation import likeness
from edgesim.learning.algorithms.latent_generator import LatentGenerator, LatentSizes, latents, new_generator, trained
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Arrivals, Device, Devices, Sizes, State, Step, Workbench
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.torch_types import F, Tensor, torch
from edgesim.streams import Streams

_DECAY, _LEAST = 0.98, 1e-4


class FedGenOptions(AveragingOptions):
    """Options of FedGen."""

    a_0: Factor = Field(10.0, ge=0)
    """Weight of the two terms of the local objective in round 1, which has none yet; 2 % less in each further round.
    With 0 there are no terms."""
    device_batch: Count = Field(32, ge=1)
    """B_g: latents of drawn classes in a local step."""
    steps: Count = Field(50, ge=1)
    """S: steps in which the server trains the generator, each round."""
    batch: Count = Field(32, ge=2)
    """B: latents in such a step."""
    a_s: Factor = Field(1.0, ge=0)
    """Weight of the devices' last layers in the generator's objective."""
    e_s: Factor = Field(1.0, ge=0)
    """Weight of the latents' likeness in the generator's objective."""
    noise: Count = Field(32, ge=1)
    """Z: numbers of noise of which a latent is made."""


@dataclass(kw_only=True)
class Taught(State):
    """The model, and the generator trained by the devices' models."""

    generator: LatentGenerator
    seen: Tensor
    """Whether a device that holds the class was ever merged, [C]."""


@dataclass
class Sending:
    """Whether the server sends its generator beside the model."""

    generator: bool = False


class FedGenLocal(LocalHalf):
    """Local training with two terms of the generator's latents in the objective."""

    features = True
    draws = True

    def __init__(self, options: FedGenOptions, sizes: Sizes, streams: Streams) -> None:
        super().__init__(options, sizes, streams)
        self.latent_sizes = LatentSizes(options.noise, sizes.classes, sizes.features)

    @override
    def loss(self, step: Step) -> Tensor:
        """Cross-entropy plus two terms of the last layer's logits for the generator's latents h, [n].

        b_t KL(softmax h of the sample's class, softmax own) and a_t B_g / batch times the cross-entropy of h of drawn
        classes; no gradient goes through the former's h.
        """
        plain = super().loss(step)
        if self.options.a_0 == 0 or "generator" not in step.given:
            return plain
        assert step.head is not None
        made, drawn = self.latents(step)
        of_classes, of_batch = step.head(made).tensor_split([len(drawn)])
        target, own = F.softmax(of_batch.detach(), 1), F.log_softmax(step.own.logits, 1)
        apart = F.kl_div(own, target, reduction="none").sum(1)
        of_labels, of_drawn = step.given["strengths"]
        terms: Tensor = of_labels * apart + of_drawn * F.cross_entropy(of_classes, drawn)
        return plain + terms

    def latents(self, step: Step) -> tuple[Tensor, Tensor]:
        """Latents of drawn classes and of the step's labels, [B_g + n, F], and these classes, [B_g].

        The former come first, as their draws are not to depend on whether a stack fills up the batch.
        """
        from edgesim.learning import draws

        assert step.key is not None
        given, like, (count, size) = step.given, step.own.logits, (self.options.device_batch, self.options.noise)
        seen = given["seen"].cumsum(0)
        places = (draws.uniform(step.key, 0, (count,), like) * seen[-1]).floor()
        drawn = (seen <= places[:, None]).sum(1)
        noise, labels = draws.normal(step.key, 1, (count + len(like), size), like), torch.cat([drawn, step.labels])
        return latents(self.latent_sizes, given["generator"], given["moments"], noise, labels), drawn


class FedGenServer(ServerHalf):
    """FedAvg's server, which trains a generator by the devices' models."""

    merges = "models and more"

    def __init__(self, options: FedGenOptions, sizes: Sizes, streams: Streams) -> None:
        super().__init__(options, sizes, streams)
        self.latent_sizes = LatentSizes(options.noise, sizes.classes, sizes.features)

    @override
    def ledger(self, round: int, last: Sending | None) -> Sending:
        """A ledger whose generator is untrained and not sent."""
        return last or Sending()

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Sending) -> Floats:
        """The model, and the generator once it is trained, [n]; moments of its batch norm are not charged."""
        generator = BITS_PER_PARAMETER * self.latent_sizes.parameters
        return super().download_bits(devices, round, ledger) + generator * ledger.generator

    @override
    def note(self, ledger: Sending, arrived: Arrivals) -> Floats:
        """Note that a merge trained the generator."""
        ledger.generator |= len(arrived.ids) > 0
        return super().note(ledger, arrived)

    @override
    def start(self, weights: Tensor, bench: Workbench) -> Taught:
        """An untrained generator, which is not sent."""
        generator = new_generator(self.latent_sizes, self.streams.generator("fedgen-start"), weights)
        return Taught(weights, generator=generator, seen=weights.new_zeros(self.sizes.classes))

    @override
    def given(self, state: Taught, device: Device, ledger: Sending) -> dict[str, Tensor]:
        """The model and, once trained, the generator, the classes seen so far and the weights of the two terms, [2].

        The weights are b_t = max(1e-4, a_0 .98^(t - 1)) and a_t B_g / batch, a_t = b_t.
        """
        given = super().given(state, device, ledger)
        if not state.shared:
            return given
        strength = max(_LEAST, self.options.a_0 * _DECAY ** (device.round - 1))
        strengths = state.weights.new_tensor([strength, strength * self.options.device_batch / device.batch])
        return given | {"moments": state.generator.moments, "seen": state.seen, "strengths": strengths}

    @override
    def refine(self, state: Taught, arrived: Arrivals, ledger: Sending, bench: Workbench) -> State:
        """Train the generator by the last layers of the devices' models, as `objective` says."""
        if not len(arrived.ids):
            return state
        options, weights = self.options, state.weights
        counts = weights.new_tensor(arrived.class_counts)
        shares = (counts / counts.sum(0)).nan_to_num()
        heads = bench.heads(start + update for start, update in zip(arrived.starts, arrived.separate, strict=True))
        held = np.flatnonzero(arrived.class_counts.sum(0))
        random = self.streams.generator("fedgen-training", round=bench.round)

        def batches() -> Iterator[tuple[Tensor, Tensor]]:
            for _ in range(options.steps):
                labels = held[random.integers(len(held), size=options.batch)]
                noise = random.standard_normal((options.batch, options.noise))
                yield weights.new_tensor(noise), torch.from_numpy(labels).to(weights.device)

        def loss(made: Tensor, noise: Tensor, labels: Tensor) -> Tensor:
            objective: Tensor = options.a_s * taught_by(heads(made), labels, shares) + options.e_s * likeness(
                made, noise
            )
            return objective

        generator = trained(state.generator, self.latent_sizes, batches(), loss)
        seen = torch.maximum(state.seen, (counts.sum(0) > 0).to(state.seen))
        return replace(state, generator=generator, seen=seen, shared={"generator": generator.weights})


class FedGen(Algorithm):
    """FedAvg with a generator that the server trains, and two terms of its latents in the local objective."""

    Options = FedGenOptions
    Local = FedGenLocal
    Server = FedGenServer
    needs = frozenset({"joint merges", "frames from the last model"})


def taught_by(logits: Tensor, labels: Tensor, shares: Tensor) -> Tensor:
    """Mean over latents of the cross-entropies of S teachers' logits [S, B, C], each times the teacher's share of the
    samples of that class, [S, C]; labels are [B].
    """
    losses = F.cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)), reduction="none")
    return (shares[:, labels].flatten() * losses).sum() / len(labels)
