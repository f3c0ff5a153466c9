"""Numbers of 16 bits: IEEE 754's binary16, to the nearest and of equally near ones the even."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs.codec import Codec, Distortion
from edgesim.learning.codecs.message import Message, Reader, written
from edgesim.learning.torch_types import Tensor

LARGEST = 65_504.0
"""The largest number of binary16; larger ones become it."""


class Half(Codec):
    """Numbers rounded to 11 significant bits; below 6.1e-5 to multiples of 2^-24."""

    passes: ClassVar[float] = 14.0

    @property
    @override
    def distortion(self) -> Distortion:
        return "rounding"

    @override
    def bits(self, d: int, setting: int) -> int:
        return 16 * d

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        return vector.clamp(-LARGEST, LARGEST).half().float()

    @override
    def counts(self, encoded: Tensor, decoded: Tensor, setting: int) -> Tensor:
        """Counts of the words of binary16."""
        import torch

        # Integers of 32 bits are counted in half of the time of longer ones.
        return decoded.half().view(torch.int16).int().add_(2**15).bincount()

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        clamped = np.clip(vector.numpy(), -LARGEST, LARGEST)
        return written(clamped.astype(np.float16).view(np.uint16), 16)

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        return reader.numbers(d, 16).astype(np.uint16).view(np.float16).astype(np.float32)
