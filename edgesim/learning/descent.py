"""Steps of SGD with momentum or Adam, of one client or of many at once, with the terms that a `Pull` adds.

Adam is Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, with its own defaults.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgesim.learning.algorithms.records import Pull
from edgesim.learning.jobs import Optimiser

_Factor = float | Tensor
"""A number that the clients share, a column of numbers, [S, 1], or a number for each weight, [S, trainable]."""


_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8
"""Adam's b1, b2, and the epsilon that is added to the root of the second moment."""


@dataclass
class SecondMoments:
    """Adam's second moments of S clients; their velocities are its first moments."""

    squares: Tensor
    """Moving mean of the squared gradients, [S, trainable]."""
    steps: int = 0
    """Steps so far; all clients of a stack have made as many."""

    def narrow(self, clients: int) -> "SecondMoments":
        """Second moments of the first clients, in the same memory."""
        return SecondMoments(self.squares[:clients], self.steps)


class Descent:
    """Steps of S clients whose trainable weights, gradients and velocities are the rows of matrices, [S, trainable].

    These change in place, as by `torch.optim.SGD` or `torch.optim.Adam`: velocity <- momentum velocity + gradient;
    w <- w - lr velocity, or both moments and the step that they make. Gradients are those of the loss and of the pull,
    clipped, plus weight decay.
    """

    def __init__(
        self,
        weights: Tensor,
        gradient: Tensor,
        velocity: Tensor,
        starts: Tensor,
        optimisers: Sequence[Optimiser],
        pulls: Sequence[Pull],
        second: SecondMoments | None = None,
    ) -> None:
        """``starts`` [S, trainable] are the weights with which the clients' jobs started; copied if they are needed.

        ``second`` are Adam's moments so far, none when absent.
        """
        self._weights, self._gradient, self._velocity = weights, gradient, velocity
        self._rate = self._factor([-optimiser.lr for optimiser in optimisers])
        self._momentum = self._factor([optimiser.momentum for optimiser in optimisers])
        # All jobs of a run have one kind of optimiser.
        if second is None and optimisers[0].kind == "adam":
            second = SecondMoments(torch.zeros_like(velocity))
        self.second = second
        """Adam's second moments; None under SGD."""
        # Terms that no client has cost nothing.
        to_start = [pull.to_start for pull in pulls]
        some = Tensor in map(type, to_start) or any(to_start)
        self._to_start = (starts.clone(), self._factor(to_start)) if some else None
        pulled = [pull.decay for pull in pulls]
        decay = [optimiser.weight_decay for optimiser in optimisers]
        self._clip_norm = optimisers[0].clip_norm
        if self._clip_norm is None:
            # Nothing comes between the two: one pass over the weights adds both.
            pulled, decay = [sum(both) for both in zip(pulled, decay, strict=True)], []
        self._pulled = self._factor(pulled) if any(pulled) else None
        self._decay = self._factor(decay) if any(decay) else None
        shifts = [pull.shift for pull in pulls]
        self._shift: Tensor | None = None
        if shifts.count(None) < len(shifts):
            none = torch.zeros_like(weights[0])
            self._shift = torch.stack([none if shift is None else shift for shift in shifts])

    def _factor(self, values: Sequence[float | Tensor]) -> _Factor:
        if Tensor in map(type, values):
            return torch.stack(
                [torch.as_tensor(value).to(self._weights).expand_as(self._weights[0]) for value in values]
            )
        if values.count(values[0]) == len(values):
            return float(values[0])
        return torch.tensor(values, dtype=torch.float64).to(self._weights)[:, None]

    def step(self) -> None:
        """Make a step with gradients of the loss, to which the terms of the pulls are added."""
        gradient, weights = self._gradient, self._weights
        if self._to_start is not None:
            starts, factor = self._to_start
            _add(gradient, weights - starts, factor)
        if self._pulled is not None:
            _add(gradient, weights, self._pulled)
        if self._shift is not None:
            gradient.add_(self._shift)
        if self._clip_norm is not None:
            norms = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            gradient.mul_(self._clip_norm / norms.clamp(min=self._clip_norm))
        if self._decay is not None:
            _add(gradient, weights, self._decay)
        if self.second is not None:
            self._adapt(self.second)
            return
        self._velocity.mul_(self._momentum).add_(gradient)
        _add(weights, self._velocity, self._rate)

    def _adapt(self, second: SecondMoments) -> None:
        """Adam's step: w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)."""
        gradient, second.steps = self._gradient, second.steps + 1
        self._velocity.lerp_(gradient, 1 - _FIRST)
        second.squares.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
        spread = second.squares.sqrt().div_(math.sqrt(1 - _SECOND**second.steps)).add_(_EPSILON)
        step = torch.div(self._velocity, spread, out=spread).div_(1 - _FIRST**second.steps)
        _add(self._weights, step, self._rate)


def _add(target: Tensor, addend: Tensor, factor: _Factor) -> None:
    """Add ``factor`` times ``addend`` to a matrix, in place."""
    if isinstance(factor, float):
        target.add_(addend, alpha=factor)
    else:
        target.addcmul_(addend, factor)
