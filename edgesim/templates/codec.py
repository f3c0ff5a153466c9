"""Few digits: numbers travel with fewer bits behind the point."""

from pydantic import Field

from edgesim.learning.codecs.codec import Codec, Distortion
from edgesim.learning.torch_types import Tensor


class FewDigits(Codec):
    """Options of the codec, keys of ``[upload]``."""

    digits: int = Field(7, ge=1, le=23)
    """Bits that are kept of the 23 behind the point of a float32 number; the others become 0."""

    @property
    def distortion(self) -> Distortion:
        """A number loses less than 2^-digits of itself, so that what is lost is shorter than the update."""
        return "contraction"

    def bits(self, d: int, setting: int) -> int:
        """A sign, 8 bits of exponent and the digits for each of ``d`` numbers."""
        return (9 + self.digits) * d

    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        """What the server reads of a vector [d] of float32; a codec that draws would be given uniforms [d], too."""
        import torch

        shortened: Tensor = vector.view(torch.int32).bitwise_and(-1 << 23 - self.digits).view(torch.float32)
        return shortened
