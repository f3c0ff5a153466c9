"""Interface of codecs: what the numbers of an update become on their way, and how many bits they take.

A codec knows no device, round or algorithm. It works on one vector of float32 numbers at a time, so that what becomes
of a vector depends on nothing that travels beside it.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, Self

from edgesim.base.errors import EdgesimError
from edgesim.config import Section
from edgesim.learning.torch_types import Tensor

Distortion = Literal["contraction", "unbiased", "rounding"]
"""Kind of a codec's error. ``contraction``: shorter than the vector by a factor below 1; ``unbiased``: 0 in the mean,
and perhaps longer than the vector; ``rounding``: small in each number, and 0 for none."""

PASSES_OF_FEEDBACK = 4.0
"""Passes over the numbers of a vector that a memory takes."""


class Codec(Section, ABC):
    """A way to send a vector; its fields are its options in ``[upload]``."""

    passes: ClassVar[float] = 0.0
    """Passes over the numbers of a vector, a multiply-add each, that encoding it takes a device."""
    least: ClassVar[float] = 1.0
    """``upload.least`` when absent."""
    sized_by: ClassVar[str] = ""
    """Option that sets the size, for which there is no use where the channel does; empty for none."""

    @property
    @abstractmethod
    def distortion(self) -> Distortion:
        """Kind of the error."""

    @property
    def streams(self) -> bool:
        """Whether each number that is kept has bits of its own, so that the first k of a message are one of k."""
        return False

    @property
    def draws(self) -> bool:
        """Whether the codec needs a uniform number in (0, 1) for each number of the vector."""
        return self.distortion == "unbiased"

    @property
    def default_feedback(self) -> Literal["none", "residual"]:
        """``upload.feedback`` when absent: contractions lose nothing for ever with a residual."""
        return "residual" if self.distortion == "contraction" else "none"

    def samples(self, feedback: str) -> float:
        """Training samples of a dense net that take a device as long as encoding: three passes each, with feedback."""
        return (self.passes + PASSES_OF_FEEDBACK * (feedback != "none")) / 3

    def unscaled(self) -> Self:
        """The codec without any factor that only makes it right in the mean."""
        return self

    def for_feedback(self) -> Self:
        """The codec as it goes with a memory of what was lost; raises `EdgesimError` for one that amplifies it."""
        codec = self.unscaled()
        if codec.distortion == "unbiased":
            raise EdgesimError(
                "upload.feedback: needs a codec whose error is shorter than the update, which that of unbiased codecs "
                "need not be: what was lost would grow without end",
                "upload.feedback",
                "upload.codec",
            )
        return codec

    def setting(self, d: int) -> int:
        """Setting by the options for ``d`` numbers, such as the numbers kept; 0 for codecs without any."""
        return 0

    @abstractmethod
    def bits(self, d: int, setting: int) -> int:
        """Bits of a vector of ``d`` numbers, whatever their values."""

    @property
    def by_values(self) -> bool:
        """Whether the bits of a message depend on its values, of which `bits` is the most."""
        return False

    def written_bits(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> int:
        """Bits of the message of a vector, [d]."""
        return self.bits(len(vector), setting)

    def largest(self, d: int, bits: int) -> int:
        """Greatest setting with which ``d`` numbers take at most so many bits; 0 where none does.

        Codecs whose size can follow the channel have an answer of their own.
        """
        return 0

    def floor(self, d: int, least: float) -> int:
        """Setting of the smallest message of ``d`` numbers that a device sends, by ``upload.least``.

        Raises `EdgesimError` for a value that stands for no setting.
        """
        return whole_least(least, 1, d, "a setting")

    def rescaled(self, setting: int, d: int, size: int) -> int:
        """The setting of ``d`` numbers that are charged, for the ``size`` numbers that are coded."""
        return setting

    @abstractmethod
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        """What the receiver reads of a vector, [d], in a tensor of its own; the vector is finite and stays as it is.

        ``uniforms`` are float32, [d], and None for a codec that does not draw. Raises `EdgesimError` for a vector that
        the codec cannot write.
        """

    def counts(self, encoded: Tensor, decoded: Tensor, setting: int) -> Tensor | None:
        """How often each symbol stands in the message of a vector, of which ``metrics`` has the entropy; whole numbers.

        None for a codec without symbols; ``encoded`` and ``decoded`` are the vector and what was read of it, [d].
        """
        return None


def whole_least(value: float, low: int, high: int, what: str) -> int:
    """``upload.least`` as a whole number; raises `EdgesimError` for any other."""
    if value != int(value) or not low <= value <= high:
        raise EdgesimError(
            f"upload.least: expected {what}, a whole number from {low} to {high} (got {value:g})", "upload.least"
        )
    return int(value)
