"""Signs of all numbers, and their mean |number| (Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019)."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs.codec import Codec, Distortion
from edgesim.learning.codecs.message import Message, Reader, floats, joined, written
from edgesim.learning.codecs.scale import as_sent
from edgesim.learning.torch_types import Tensor


class Sign(Codec):
    """A bit for each number; 0 counts as positive."""

    passes: ClassVar[float] = 16.0

    @property
    @override
    def distortion(self) -> Distortion:
        return "contraction"

    @override
    def bits(self, d: int, setting: int) -> int:
        return 32 + d

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        return signs(vector).mul_(mean_size(vector))

    @override
    def counts(self, encoded: Tensor, decoded: Tensor, setting: int) -> Tensor:
        """Counts of what is positive and negative."""
        import torch

        negative = int((decoded < 0).count_nonzero())
        return torch.tensor([len(decoded) - negative, negative])

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        return joined(floats(mean_size(vector).numpy()), written(vector.numpy() < 0, 1))

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        scale = reader.floats(1)
        return np.where(reader.numbers(d, 1), -scale, scale)


def mean_size(vector: Tensor) -> Tensor:
    """Mean |number| of a vector, as the receiver reads it, [1]."""
    return as_sent((vector.abs().double().sum() / len(vector)).reshape(1))


def signs(vector: Tensor) -> Tensor:
    """1 and -1, [d]; 1 for 0."""
    # Adding 0 makes 0 of -0, whose sign bit would count.
    return vector.new_ones(len(vector)).copysign_(vector + 0)
