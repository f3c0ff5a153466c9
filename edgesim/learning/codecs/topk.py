"""Top k: the largest |numbers| travel, with their places."""

from typing import Literal, Self

import numpy as np
from pydantic import model_validator
from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs import kept, one_sided
from edgesim.learning.codecs.message import Message, Reader, floats, joined
from edgesim.learning.codecs.places import WAYS, Coding
from edgesim.learning.codecs.sparse import Sparse
from edgesim.learning.torch_types import Tensor


class TopK(Sparse):
    """The k largest |numbers|, as they are or those of one sign at their mean; all others become 0."""

    coding: Coding = "rice"
    """How places are written: ``rice``: gaps, padded to the most that they can take; ``enumerative``: the number of
    the set of places; ``index``: each place; ``bitmap``: a bit for each number."""
    values: Literal["own", "one-sided"] = "own"
    """Which values travel: each number's own, or of the sign whose mean |number| is larger the mean alone; its places
    are written with ``enumerative``."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.values == "one-sided" and self.coding != "enumerative":
            raise ValueError(f"values = 'one-sided' needs coding = 'enumerative', not {self.coding!r}")
        return self

    @property
    @override
    def streams(self) -> bool:
        """With places that need no order: numbers then go out by falling size."""
        return self.coding == "index"

    @override
    def bits(self, d: int, setting: int) -> int:
        if self.values == "one-sided":
            return one_sided.bits(d, setting)
        return 32 * setting + WAYS[self.coding].size_bits(d, setting)

    @override
    def largest(self, d: int, bits: int) -> int:
        if self.values == "one-sided":
            return one_sided.most(d, bits)
        return WAYS[self.coding].most(d, bits, 32)

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        if self.values == "one-sided":
            return one_sided.coded(vector, setting)
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
        if self.values == "one-sided":
            return one_sided.write(vector, setting)
        places = kept.largest(vector.abs(), setting)
        return joined(floats(vector[places].numpy()), WAYS[self.coding].write(places.numpy(), len(vector)))

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        if self.values == "one-sided":
            return one_sided.read(reader, d, setting)
        values, numbers = np.zeros(d, dtype=np.float32), reader.floats(setting)
        values[WAYS[self.coding].read(reader, d, setting)] = numbers
        return values
