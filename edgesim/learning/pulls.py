"""What a `Pull` adds to gradients, of one client or of many at once: no other module knows its terms."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from edgesim.algorithms.algorithm import Pull
from edgesim.learning.jobs import Optimiser

Factor = float | Tensor
"""One number for all elements of a vector, or one for each."""


class LinearTerms:
    """Terms of gradients that lie in one vector; those that no client has cost nothing."""

    def __init__(
        self,
        pulls: Sequence[Pull],
        optimisers: Sequence[Optimiser],
        starts: Tensor,
        factor: Callable[[Sequence[float]], Factor],
        vector: Callable[[Tensor], Tensor],
    ) -> None:
        """``starts`` are the trainable weights with which the S clients start, [S, trainable].

        ``factor`` makes of a number per client what multiplies the vector; ``vector`` lays out rows [S, trainable] as
        the vector, in memory of their own.
        """
        to_start = [pull.to_start for pull in pulls]
        decay = [pull.decay + optimiser.weight_decay for pull, optimiser in zip(pulls, optimisers, strict=True)]
        shifts = [pull.shift for pull in pulls]
        self._to_start = (vector(starts), factor(to_start)) if any(to_start) else None
        self._decay = factor(decay) if any(decay) else None
        self._shift: Tensor | None = None
        if any(shift is not None for shift in shifts):
            none = torch.zeros_like(starts[0])
            self._shift = vector(torch.stack([none if shift is None else shift for shift in shifts]))

    def add_to(self, gradient: Tensor, weights: Tensor) -> None:
        """Add the terms to a gradient at the weights, in place."""
        if self._to_start is not None:
            start, factor = self._to_start
            add_scaled(gradient, weights - start, factor)
        if self._decay is not None:
            add_scaled(gradient, weights, self._decay)
        if self._shift is not None:
            gradient.add_(self._shift)


def add_scaled(target: Tensor, what: Tensor, factor: Factor) -> None:
    """Add ``factor`` times a vector to another, in place."""
    if isinstance(factor, float):
        target.add_(what, alpha=factor)
    else:
        target.addcmul_(what, factor)
