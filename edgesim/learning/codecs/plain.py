"""No compression: every number travels as it is, with 32 bits."""

from typing_extensions import override

from edgesim.base.arrays import Singles
from edgesim.learning.codecs.codec import Codec, Distortion
from edgesim.learning.codecs.message import Message, Reader, floats
from edgesim.learning.torch_types import Tensor


class Plain(Codec):
    """Numbers as they are."""

    @property
    @override
    def distortion(self) -> Distortion:
        return "rounding"

    @override
    def bits(self, d: int, setting: int) -> int:
        return 32 * d

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        return vector.clone()

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        return floats(vector.numpy())

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        return reader.floats(d)
