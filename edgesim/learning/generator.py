"""A conditional generator, which makes images from noise and a class (KPFL, DPFL's program).

Its state is flat: parameters first, in the order of the module, then the running moments of its batch norms.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from edgesim.learning.flat import FlatModel
from edgesim.learning.passes import kept_bytes
from edgesim.learning.restored_adam import restored_adam

NOISE = 100
"""Z: numbers of noise per image."""
_WIDTH = 16
_LR, _WEIGHT_DECAY, _CLIP_NORM = 3e-4, 1e-2, 10.0


@dataclass(frozen=True)
class TrainedGenerator:
    """State of a generator and of its optimiser."""

    weights: Tensor
    """Parameters and moments, [P_G + buffers]."""
    first: Tensor
    """Adam's moving mean of gradients, [P_G]."""
    second: Tensor
    """Adam's moving mean of squared gradients, [P_G]."""
    steps: int = 0
    """Steps of Adam so far."""


class Layers(nn.Module):
    """Network from noise [n, Z] and labels [n] to images [n, C, H, W] of brightness 0 to 1."""

    def __init__(self, image_shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        channels, height, width = image_shape
        self.classes, self.size = classes, (height, width)
        self.coarse = -(-height // 4), -(-width // 4)
        count = _WIDTH * self.coarse[0] * self.coarse[1]
        self.of_noise, self.of_class = nn.Linear(NOISE, count), nn.Linear(classes, count)
        self.norm = nn.BatchNorm2d(2 * _WIDTH)
        self.middle = nn.Conv2d(2 * _WIDTH, 2 * _WIDTH, 3, padding=1)
        self.middle_norm = nn.BatchNorm2d(2 * _WIDTH)
        self.fine = nn.Conv2d(2 * _WIDTH, _WIDTH, 3, padding=1)
        self.fine_norm = nn.BatchNorm2d(_WIDTH)
        self.last = nn.Conv2d(_WIDTH, channels, 3, padding=1)

    @override
    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        one_hot = F.one_hot(labels, self.classes).to(noise)
        x = torch.cat([self.of_noise(noise), self.of_class(one_hot)], 1).view(-1, 2 * _WIDTH, *self.coarse)
        x = F.interpolate(self.norm(x), scale_factor=2.0)
        x = F.leaky_relu(self.middle_norm(self.middle(x)), 0.2)
        x = F.interpolate(x, self.size)
        x = F.leaky_relu(self.fine_norm(self.fine(x)), 0.2)
        return torch.sigmoid(self.last(x))


class ImageGenerator:
    """Plays and trains generators of images of one shape, in one type and on one device."""

    def __init__(self, image_shape: tuple[int, int, int], classes: int, like: Tensor) -> None:
        self._arguments = image_shape, classes
        self._like = like

    @cached_property
    def _model(self) -> FlatModel:
        # On no device: initial numbers would be drawn from torch's global generator.
        with torch.device("meta"):
            layers = Layers(*self._arguments)
        layers = layers.to_empty(device=self._like.device).to(self._like.dtype)
        return FlatModel(layers, self._like.device)

    @property
    def parameters(self) -> int:
        """Number of the generator's parameters, P_G."""
        return self._model.trainable

    def bytes_to_train(self, images: int) -> int:
        """Memory of a generator, of its training and of a step on so many images.

        Weights and Adam's moments before and after, weights and gradient in the layers, and Adam's working memory; the
        tensors that a pass stores for its gradient, and as much again for gradients; the difference and its square of
        each pair of noises, as in `edgesim.learning.algorithms.distillation.likeness`.
        """
        model = self._model
        model.module.train()
        # One image would be too few for a batch norm.
        noise, labels = torch.zeros(2, NOISE).to(self._like), torch.zeros(2, dtype=torch.int64, device=model.device)
        of_pairs = 2 * images**2 * NOISE * self._like.itemsize
        return 12 * model.weights.nbytes + images * kept_bytes(model, noise, labels) + of_pairs

    def new(self, random: np.random.Generator) -> TrainedGenerator:
        """An untrained generator: weights and biases uniform within 1 / sqrt(inputs), as in torch's layers."""
        model = self._model
        for module in model.module.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                bound = module.weight[0].numel() ** -0.5
                for parameter in module.parameters():
                    values = random.uniform(-bound, bound, tuple(parameter.shape))
                    parameter.data.copy_(torch.from_numpy(values))
            elif isinstance(module, nn.BatchNorm2d):
                module.reset_parameters()
        none = torch.zeros_like(model.gradient)
        return TrainedGenerator(model.snapshot(), none, none.clone())

    def images(self, generator: TrainedGenerator, noise: Tensor, labels: Tensor) -> Tensor:
        """Images [n, C, H, W] of noise [n, Z] and labels [n], in evaluation mode and without gradient."""
        model = self._model
        model.load(generator.weights)
        model.module.eval()
        with torch.no_grad():
            images: Tensor = model.module(noise, labels)
        return images

    def trained(
        self,
        generator: TrainedGenerator,
        batches: Iterable[tuple[Tensor, Tensor]],
        loss: Callable[[Tensor, Tensor, Tensor], Tensor],
    ) -> TrainedGenerator:
        """The generator after a step of Adam on each batch of noise [B, Z] and labels [B].

        ``loss`` is of images [B, C, H, W], their noise and their labels.
        """
        model = self._model
        model.load(generator.weights)
        model.module.train()
        parameters = model.parameters()
        first, second, steps = generator.first.clone(), generator.second.clone(), generator.steps
        adam = restored_adam(parameters, _LR, _WEIGHT_DECAY, model.split(first), model.split(second), steps)
        for noise, labels in batches:
            model.gradient.zero_()
            loss(model.module(noise, labels), noise, labels).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, _CLIP_NORM)
            adam.step()
            steps += 1
        return TrainedGenerator(model.snapshot(), first, second, steps)
