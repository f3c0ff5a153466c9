"""Random k: numbers at places that sender and receiver both draw, so that no places travel."""

from typing import ClassVar, Self

import numpy as np
from pydantic import PrivateAttr
from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs import kept
from edgesim.learning.codecs.codec import Distortion
from edgesim.learning.codecs.message import Message, Reader, floats
from edgesim.learning.codecs.scale import as_sent
from edgesim.learning.codecs.sparse import Sparse
from edgesim.learning.torch_types import Tensor


class RandK(Sparse):
    """k places, each set of k as likely as any other; the numbers there count d / k times, all others become 0."""

    passes: ClassVar[float] = 12.0

    _is_scaled: bool = PrivateAttr(True)

    @property
    @override
    def distortion(self) -> Distortion:
        return "unbiased" if self._is_scaled else "contraction"

    @property
    @override
    def streams(self) -> bool:
        return True

    @property
    @override
    def draws(self) -> bool:
        return True

    @override
    def unscaled(self) -> Self:
        """The codec whose numbers count once: with d / k a residual would grow without end."""
        codec = self.model_copy()
        codec._is_scaled = False
        return codec

    @override
    def bits(self, d: int, setting: int) -> int:
        return 32 * setting

    @override
    def largest(self, d: int, bits: int) -> int:
        return max(0, min(bits // 32, d))

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        places = _places(uniforms, setting)
        numbers = as_sent(vector[places] * self._factor(len(vector), setting), "a number of an update, times d / k,")
        return vector.new_zeros(len(vector)).index_copy_(0, places, numbers)

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        return floats(vector[_places(uniforms, setting)].numpy())

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]; ``uniforms`` are the sender's."""
        values = np.zeros(d, dtype=np.float32)
        numbers = reader.floats(setting) * np.float32(self._factor(d, setting))
        values[_places(uniforms, setting).numpy()] = numbers
        return values

    def _factor(self, d: int, k: int) -> float:
        return d / k if self._is_scaled else 1.0


def _places(uniforms: Tensor | None, k: int) -> Tensor:
    assert uniforms is not None
    return kept.largest(uniforms.neg(), k)
