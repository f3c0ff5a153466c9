"""A conditional generator of latents: from noise and a class it makes inputs of a model's last layer.

Linear(Z + C, 256), batch norm, ReLU, Linear(256, F), without a non-linearity at its end (Zhu et al., ICML 2021). Its
parameters are one vector, weights and biases of the first layer, the batch norm and the second layer in this order.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from edgesim.learning.torch_types import F, Tensor, torch

HIDDEN = 256
_LR, _LR_DECAY, _WEIGHT_DECAY = 3e-4, 0.98, 1e-2


@dataclass(frozen=True)
class LatentSizes:
    """Sizes of a generator's layers."""

    noise: int
    """Z."""
    classes: int
    """C."""
    features: int
    """F."""

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the generator's tensors, in their order."""
        inputs = self.noise + self.classes
        return [(HIDDEN, inputs), (HIDDEN,), (HIDDEN,), (HIDDEN,), (self.features, HIDDEN), (self.features,)]

    @property
    def parameters(self) -> int:
        """P_G = 256 (Z + C) + 256 + 512 + 256 F + F."""
        return sum(math.prod(shape) for shape in self.shapes)


@dataclass(frozen=True)
class LatentGenerator:
    """A generator and the state of its training."""

    weights: Tensor
    """[P_G]."""
    moments: Tensor
    """Running mean and variance of its batch norm, [2, 256]."""
    first: Tensor
    """Adam's moving mean of gradients, [P_G]."""
    second: Tensor
    """Adam's moving mean of squared gradients, [P_G]."""
    steps: int = 0
    """Steps of Adam so far."""
    trainings: int = 0
    """Rounds in which the generator was trained."""


def new_generator(sizes: LatentSizes, random: np.random.Generator, like: Tensor) -> LatentGenerator:
    """Untrained: weights and biases uniform within 1 / sqrt(inputs), as `torch.nn.Linear` has them."""

    def linear(inputs: int, outputs: int) -> list[Tensor]:
        bound = inputs**-0.5
        return [like.new_tensor(random.uniform(-bound, bound, count)) for count in (inputs * outputs, outputs)]

    norm = [like.new_ones(HIDDEN), like.new_zeros(HIDDEN)]
    layers = [*linear(sizes.noise + sizes.classes, HIDDEN), *norm, *linear(HIDDEN, sizes.features)]
    weights, moments = torch.cat(layers), torch.stack([like.new_zeros(HIDDEN), like.new_ones(HIDDEN)])
    return LatentGenerator(weights, moments, torch.zeros_like(weights), torch.zeros_like(weights))


def latents(
    sizes: LatentSizes, weights: Tensor, moments: Tensor, noise: Tensor, labels: Tensor, train: bool = False
) -> Tensor:
    """Latents, [n, F], that a generator of ``weights`` makes from noise [n, Z] and labels [n].

    In training mode it changes the running ``moments`` in place.
    """
    parts = torch.split(weights, [math.prod(shape) for shape in sizes.shapes])
    into, bias, scale, shift, out, out_bias = (
        part.view(shape) for part, shape in zip(parts, sizes.shapes, strict=True)
    )
    one_hot = (labels[:, None] == torch.arange(sizes.classes, device=labels.device)).to(noise)
    hidden = F.linear(torch.cat([noise, one_hot], 1), into, bias)
    hidden = F.batch_norm(hidden, moments[0], moments[1], scale, shift, train)
    return F.linear(F.relu(hidden), out, out_bias)


def trained(
    generator: LatentGenerator,
    sizes: LatentSizes,
    batches: Iterable[tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> LatentGenerator:
    """The generator after a step of Adam on each batch of noise [B, Z] and labels [B].

    ``loss`` is of latents [B, F], their noise and their labels. The rate falls by 2 % with every training.
    """
    from edgesim.learning.restored_adam import restored_adam

    weights, moments = generator.weights.clone().requires_grad_(), generator.moments.clone()
    first, second, steps = generator.first.clone(), generator.second.clone(), generator.steps
    lr = _LR * _LR_DECAY**generator.trainings
    adam = restored_adam([weights], lr, _WEIGHT_DECAY, [first], [second], steps)
    for noise, labels in batches:
        adam.zero_grad()
        loss(latents(sizes, weights, moments, noise, labels, train=True), noise, labels).backward()  # type: ignore[no-untyped-call]
        adam.step()
        steps += 1
    return LatentGenerator(weights.detach(), moments, first, second, steps, generator.trainings + 1)
