"""Top k: the largest |numbers| travel, with their places."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs import kept
from edgesim.learning.codecs.message import Message, Reader, floats, joined
from edgesim.learning.codecs.places import WAYS, Coding
from edgesim.learning.codecs.sparse import Sparse
from edgesim.learning.torch_types import Tensor


class TopK(Sparse):
    """The k largest |numbers| as they are; all others become 0."""

    coding: Coding = "rice"
    """How places are written: ``rice``: gaps, padded to the most that they can take; ``enumerative``: the number of
    the set of places; ``index``: each place; ``bitmap``: a bit for each number."""

    @property
    @override
    def streams(self) -> bool:
        """With places that need no order: numbers then go out by falling size."""
        return self.coding == "index"

    @override
    def bits(self, d: int, setting: int) -> int:
        return 32 * setting + WAYS[self.coding].size_bits(d, setting)

    @override
    def largest(self, d: int, bits: int) -> int:
        return WAYS[self.coding].most(d, bits, 32)

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        places = kept.largest(vector.abs(), setting)
        return vector.new_zeros(len(vector)).index_copy_(0, places, vector[places])

    @override
    def counts(self, encoded: Tensor, decoded: Tensor, setting: int) -> Tensor:
        """Counts of what is dropped and kept; the values of these are no symbols."""
        import torch

        kept = int(decoded.count_nonzero())
        return torch.tensor([len(decoded) - kept, kept])

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        places = kept.largest(vector.abs(), setting)
        return joined(floats(vector[places].numpy()), WAYS[self.coding].write(places.numpy(), len(vector)))

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        values, numbers = np.zeros(d, dtype=np.float32), reader.floats(setting)
        values[WAYS[self.coding].read(reader, d, setting)] = numbers
        return values
