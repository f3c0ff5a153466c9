"""Natural compression: each number becomes one of the two powers of two around it, and is right in the mean.

|v| = 2^a (1 + f) becomes 2^(a + 1) with probability f, else 2^a; the error is at most an eighth of ||v||^2 in the mean.
S. Horvath et al., "Natural compression for distributed deep learning", arXiv 1905.10988.
"""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs.codec import Codec, Distortion
from edgesim.learning.codecs.message import Message, Reader, written
from edgesim.learning.torch_types import Tensor

_MANTISSA_BITS = 23
_LARGEST = 2.0**127


class Natural(Codec):
    """Signs and exponents of float32; numbers below 2^-126 become 0 or that."""

    passes: ClassVar[float] = 8.0

    @property
    @override
    def distortion(self) -> Distortion:
        return "unbiased"

    @override
    def bits(self, d: int, setting: int) -> int:
        return 9 * d

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        import torch

        assert uniforms is not None
        # A uniform whole number added to the mantissa carries into the exponent with probability f.
        words = (uniforms * 2**_MANTISSA_BITS).int().add_(vector.view(torch.int32))
        rounded: Tensor = words.bitwise_and_(-1 << _MANTISSA_BITS).view(torch.float32)
        return rounded.clamp_(-_LARGEST, _LARGEST)

    @override
    def counts(self, encoded: Tensor, decoded: Tensor, setting: int) -> Tensor:
        """Counts of signs and exponents."""
        import torch

        return (decoded.view(torch.int32) >> _MANTISSA_BITS).add_(2**8).bincount()

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        words = self.coded(vector, uniforms, setting).numpy().view(np.uint32)
        return written(words >> _MANTISSA_BITS, 9)

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        words = reader.numbers(d, 9) << _MANTISSA_BITS
        return words.astype(np.uint32).view(np.float32)
