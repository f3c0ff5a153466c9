"""What codecs share that keep k numbers of a vector: how many they are."""

from typing import ClassVar

from typing_extensions import override

from edgesim.learning.codecs import kept
from edgesim.learning.codecs.codec import Codec, Distortion


class Sparse(Codec):
    """A codec that keeps k numbers: the largest |numbers|, of equal ones the first, unless it draws their places."""

    passes: ClassVar[float] = 56.0
    least: ClassVar[float] = kept.LEAST
    sized_by: ClassVar[str] = "ratio"

    ratio: kept.Ratio = 0.01
    """k as a share of all numbers, rounded up."""

    @property
    @override
    def distortion(self) -> Distortion:
        return "contraction"

    @override
    def setting(self, d: int) -> int:
        return kept.count(self.ratio, d)

    @override
    def floor(self, d: int, least: float) -> int:
        return kept.floor(least, d)

    @override
    def rescaled(self, setting: int, d: int, size: int) -> int:
        """The same share of the numbers."""
        return kept.count(setting / d, size)
