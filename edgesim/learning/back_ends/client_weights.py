"""Weights of many clients as the tensors of one model."""

from collections.abc import Sequence

import torch
from torch import Tensor

from edgesim.learning.algorithms.records import Pull
from edgesim.learning.descent import Descent, SecondMoments
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Optimiser
from edgesim.learning.weighted_gradients import weighted_gradients


class ClientWeights:
    """Weights of S clients, tensor by tensor, and their steps."""

    def __init__(
        self,
        model: FlatModel,
        starts: Tensor,
        weights: Tensor,
        optimisers: Sequence[Optimiser],
        pulls: Sequence[Pull],
        velocity: Tensor,
        second: SecondMoments | None = None,
    ) -> None:
        """``starts`` [S, P] are the start weights of the clients' jobs; steps change the ``weights`` [S, P] and
        velocities [S, trainable] in place. Optimisers and pulls are [S]; ``second`` are Adam's moments so far, if there
        are any.
        """
        self._model, self._starts, self._weights, self._optimisers, self._pulls = (
            model, starts, weights, optimisers, pulls
        )  # fmt: skip
        own, start = weights[:, : model.trainable], starts[:, : model.trainable]
        gradient = torch.empty_like(own)
        self._velocity = velocity
        self._descent = Descent(own, gradient, velocity, start, optimisers, pulls, second)
        self._gradients = model.split(gradient)
        parts = model.split(weights)
        # `data`: autograd is not to follow changes by way of the matrix.
        self._leaves = [part.data.requires_grad_() for part in parts[: len(self._gradients)]]
        self._buffers = parts[len(self._leaves) :]
        # A layer that changes them may else change a copy, where the clients' do not lie behind one another.
        together = [part.clone(memory_format=torch.contiguous_format) for part in self._buffers]
        self.tensors = dict(zip(model.names, self._leaves + together, strict=True))
        """Tensors of all clients by their names in the module, each [S, *shape]."""

    def __len__(self) -> int:
        return len(self._weights)

    def step(self, losses: Tensor, shares: Tensor) -> None:
        """Make a step on the sum of losses [n], each times its share [n]."""
        self.descend(weighted_gradients(losses, shares, self._leaves, allow_unused=True))

    def descend(self, gradients: Sequence[Tensor | None]) -> None:
        """Make a step with the gradient of each tensor, [S, *shape]; None where a loss does not depend on it."""
        for gradient, of_tensor in zip(self._gradients, gradients, strict=True):
            gradient.zero_() if of_tensor is None else gradient.copy_(of_tensor)
        self._descent.step()

    def store_buffers(self) -> None:
        """Copy buffers into the matrix of weights, which the steps alone do not change."""
        for place, name in zip(self._buffers, self._model.names[len(self._leaves) :], strict=True):
            place.copy_(self.tensors[name])

    def narrow(self, clients: int) -> "ClientWeights":
        """The first clients, as they are now and in the same memory."""
        self.store_buffers()
        few = self._starts[:clients], self._weights[:clients], self._optimisers[:clients], self._pulls[:clients]
        second = self._descent.second
        return ClientWeights(self._model, *few, self._velocity[:clients], second and second.narrow(clients))
