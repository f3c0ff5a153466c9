"""Weights of many clients, tensor by tensor, and their SGD."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from edgesim.arrays import Floats
from edgesim.learning.flat import FlatModel

Form = tuple[int, bool, bool]
"""Clients of a stack, and whether its steps have a proximal term and weight decay."""


class Stack:
    """Weights, gradients and velocities of S clients; every tensor of the model is one of [S, *shape]."""

    def __init__(
        self,
        model: FlatModel,
        tensors: Sequence[Tensor],
        lr: Floats,
        momentum: Floats,
        proximal: Floats,
        weight_decay: Floats,
        velocity: Iterable[Tensor] | None = None,
        start: Iterable[Tensor] | None = None,
        fixed: bool = False,
    ) -> None:
        """Tensors [S, *shape] in the model's order are copied; lr, momentum, proximal term and decay are [S].

        Where they are not given, velocity starts at zero and the proximal term pulls to the weights as they are now.
        A ``fixed`` stack can become a copy of others without a change of what its steps do to which memory.
        """
        self._model = model
        self._lr, self._momentum, self._proximal, self._weight_decay = lr, momentum, proximal, weight_decay
        self._count = len(model.parameters())
        trainable = tensors[: self._count]
        self._sizes = [tensor.numel() for tensor in trainable]
        self._weights = _flat(tensor.detach() for tensor in trainable)
        self._gradient = torch.zeros_like(self._weights)
        self._velocity = torch.zeros_like(self._weights) if velocity is None else _flat(velocity)
        self._start = (self._weights.clone() if start is None else _flat(start)) if proximal.any() else None
        self._fixed = fixed
        self._rate, self._decay, self._pull, self._shrink = map(
            self._per_element, (-lr, momentum, proximal, weight_decay)
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
        return len(self._lr)

    def _per_element(self, values: Floats) -> float | Tensor:
        """One number where the clients share it and the stack is not fixed, else a number per weight."""
        if not self._fixed and (values == values[0]).all():
            return float(values[0])
        each = torch.from_numpy(values).to(self._weights)
        return torch.cat([each.repeat_interleave(size // len(values)) for size in self._sizes])

    def zero_gradient(self) -> None:
        """Forget the gradients of the step before."""
        self._gradient.zero_()

    def step(self) -> None:
        """One step of SGD with the gradients that have accumulated."""
        if self._start is not None:
            _add(self._gradient, self._weights - self._start, self._pull)
        if self._weight_decay.any():
            _add(self._gradient, self._weights, self._shrink)
        self._velocity.mul_(self._decay).add_(self._gradient)
        _add(self._weights, self._velocity, self._rate)

    @property
    def nbytes(self) -> int:
        """About what a fixed copy takes: weights, gradients, velocities, where they started, and four rates of each."""
        return 8 * self._weights.nbytes

    @property
    def form(self) -> Form:
        """Stacks of one form take the same steps."""
        return len(self), self._start is not None, bool(self._weight_decay.any())

    def fixed(self) -> "Stack":
        """A fixed copy."""
        return self.narrow(len(self), fixed=True)

    def become(self, other: "Stack") -> None:
        """Copy all of another stack of this form into this fixed one."""
        self._lr, self._momentum, self._proximal, self._weight_decay = (
            other._lr, other._momentum, other._proximal, other._weight_decay
        )  # fmt: skip
        for mine, theirs in zip(self._held(), other._held(), strict=True):
            assert isinstance(mine, Tensor), "a fixed stack has no rates that its clients share"
            if isinstance(theirs, Tensor):
                mine.copy_(theirs)
            else:
                mine.fill_(theirs)

    def _held(self) -> list[Tensor | float]:
        """All that steps read and change."""
        start = [] if self._start is None else [self._start]
        buffers = list(self.tensors.values())[self._count :]
        rates = [self._rate, self._decay, self._pull, self._shrink]
        return [self._weights, self._velocity, *start, *buffers, *rates]

    def narrow(self, clients: int, fixed: bool = False) -> "Stack":
        """The first clients, as a stack of their own."""
        tensors = [tensor[:clients] for tensor in self.tensors.values()]
        velocity = self._first(clients, self._velocity)
        start = None if self._start is None else self._first(clients, self._start)
        lr, momentum, proximal, weight_decay = (
            values[:clients] for values in (self._lr, self._momentum, self._proximal, self._weight_decay)
        )
        return Stack(self._model, tensors, lr, momentum, proximal, weight_decay, velocity, start, fixed)

    def _first(self, clients: int, vector: Tensor) -> list[Tensor]:
        """The first clients' part of a vector of all, tensor by tensor."""
        parts = zip(torch.split(vector, self._sizes), self.tensors.values(), strict=False)
        return [part.view(tensor.shape)[:clients] for part, tensor in parts]

    def write(self, rows: Tensor) -> None:
        """Copy the weights into vectors, [S, P]."""
        for view, tensor in zip(self._model.split(rows), self.tensors.values(), strict=True):
            view.copy_(tensor.detach())


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _add(target: Tensor, what: Tensor, factor: float | Tensor) -> None:
    if isinstance(factor, float):
        target.add_(what, alpha=factor)
    else:
        target.addcmul_(what, factor)
