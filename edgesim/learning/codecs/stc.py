"""Sparse ternary compression: of the largest |numbers| the signs travel, with their places and one mean |number|.

Sattler et al., "Robust and communication-efficient federated learning from non-IID data", arXiv 1903.02891.
"""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs import kept
from edgesim.learning.codecs.message import Message, Reader, floats, joined, written
from edgesim.learning.codecs.places import WAYS, Coding
from edgesim.learning.codecs.sign import mean_size, signs
from edgesim.learning.codecs.sparse import Sparse
from edgesim.learning.torch_types import Tensor

_MOST = 0.1
"""Share of the numbers that a size by the channel never exceeds: of numbers that all become their mean more are not
better. With a residual the error of updates is least at some such share, and at all numbers one of the greatest."""


class Stc(Sparse):
    """The k largest |numbers| at their mean; all others become 0."""

    coding: Coding = "rice"
    """How places are written: ``rice``: gaps, padded to the most that they can take; ``enumerative``: the number of
    the set of places; ``index``: each place; ``bitmap``: a bit for each number."""

    @override
    def bits(self, d: int, setting: int) -> int:
        return 32 + setting + WAYS[self.coding].size_bits(d, setting)

    @override
    def largest(self, d: int, bits: int) -> int:
        """As many numbers as fit, up to a tenth of them: more would be a greater error."""
        return min(WAYS[self.coding].most(d, bits - 32, 1), kept.count(_MOST, d))

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        places = kept.largest(vector.abs(), setting)
        numbers = vector[places]
        return vector.new_zeros(len(vector)).index_copy_(0, places, signs(numbers).mul_(mean_size(numbers)))

    @override
    def counts(self, encoded: Tensor, decoded: Tensor, setting: int) -> Tensor:
        """Counts of what is negative, dropped and positive."""
        import torch

        negative, kept = int((decoded < 0).count_nonzero()), int(decoded.count_nonzero())
        return torch.tensor([negative, len(decoded) - kept, kept - negative])

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        places = kept.largest(vector.abs(), setting)
        numbers = vector[places]
        of_places = WAYS[self.coding].write(places.numpy(), len(vector))
        return joined(floats(mean_size(numbers).numpy()), written(numbers.numpy() < 0, 1), of_places)

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        values, scale = np.zeros(d, dtype=np.float32), reader.floats(1)
        numbers = np.where(reader.numbers(setting, 1), -scale, scale)
        values[WAYS[self.coding].read(reader, d, setting)] = numbers
        return values
