"""Weights of many clients, tensor by tensor, and their SGD."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from edgesim.algorithms.algorithm import Pull
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Optimiser
from edgesim.learning.pulls import Factor, LinearTerms, add_scaled


class ClientWeights:
    """Weights, gradients and velocities of S clients; every tensor of the model is one of [S, *shape]."""

    def __init__(
        self,
        model: FlatModel,
        starts: Tensor,
        optimisers: Sequence[Optimiser],
        pulls: Sequence[Pull],
        tensors: Sequence[Tensor] | None = None,
        velocity: Iterable[Tensor] | None = None,
    ) -> None:
        """``starts`` [S, P] are the weights with which the clients' jobs start; optimisers and pulls are [S].

        Clients on their way also have ``tensors`` [S, *shape] in the model's order, which are copied, and velocities.
        """
        self._model, self._starts, self._optimisers, self._pulls = model, starts, optimisers, pulls
        self._count = len(model.parameters())
        tensors = model.split(starts) if tensors is None else tensors
        trainable = tensors[: self._count]
        self._sizes = [tensor.numel() for tensor in trainable]
        self._weights = _flat(tensor.detach() for tensor in trainable)
        self._gradient = torch.zeros_like(self._weights)
        self._velocity = torch.zeros_like(self._weights) if velocity is None else _flat(velocity)
        self._rate = self._factor([-optimiser.lr for optimiser in optimisers])
        self._momentum = self._factor([optimiser.momentum for optimiser in optimisers])
        self._terms = LinearTerms(
            pulls, optimisers, starts[:, : model.trainable], self._factor, lambda rows: _flat(model.split(rows))
        )
        self.tensors: dict[str, Tensor] = {}
        """By their names in the module."""
        parts = zip(torch.split(self._weights, self._sizes), torch.split(self._gradient, self._sizes), strict=True)
        for name, tensor, (weights, gradient) in zip(model.names, trainable, parts, strict=False):
            leaf = weights.view(tensor.shape).detach().requires_grad_()
            leaf.grad = gradient.view(tensor.shape)
            self.tensors[name] = leaf
        for name, tensor in zip(model.names[self._count :], tensors[self._count :], strict=True):
            self.tensors[name] = tensor.clone(memory_format=torch.contiguous_format)

    def __len__(self) -> int:
        return len(self._optimisers)

    def _factor(self, values: Sequence[float]) -> Factor:
        """One number where the clients share it, else a number per weight."""
        if all(value == values[0] for value in values):
            return float(values[0])
        each = torch.tensor(values, dtype=torch.float64).to(self._weights)
        return torch.cat([each.repeat_interleave(size // len(values)) for size in self._sizes])

    def zero_gradient(self) -> None:
        """Forget the gradients of the step before."""
        self._gradient.zero_()

    def step(self) -> None:
        """One step of SGD with the gradients that have accumulated."""
        self._terms.add_to(self._gradient, self._weights)
        self._velocity.mul_(self._momentum).add_(self._gradient)
        add_scaled(self._weights, self._velocity, self._rate)

    def narrow(self, clients: int) -> "ClientWeights":
        """The first clients, as they are now."""
        tensors = [tensor[:clients] for tensor in self.tensors.values()]
        parts = zip(torch.split(self._velocity, self._sizes), tensors, strict=False)
        velocity = [part.view(-1, *tensor.shape[1:])[:clients] for part, tensor in parts]
        few = self._starts[:clients], self._optimisers[:clients], self._pulls[:clients]
        return ClientWeights(self._model, *few, tensors, velocity)

    def write(self, rows: Tensor) -> None:
        """Copy the weights into vectors, [S, P]."""
        for view, tensor in zip(self._model.split(rows), self.tensors.values(), strict=True):
            view.copy_(tensor.detach())


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])
