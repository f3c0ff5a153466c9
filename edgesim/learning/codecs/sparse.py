"""What codecs share that keep the largest numbers of a vector: how many, and how their places are written."""

from typing import ClassVar

from typing_extensions import override

from edgesim.learning.codecs import kept
from edgesim.learning.codecs.codec import Codec, Distortion
from edgesim.learning.codecs.places import Coding


class Sparse(Codec):
    """A codec that keeps the k largest |numbers|, of equal ones those at lower places."""

    passes: ClassVar[float] = 56.0
    least: ClassVar[float] = kept.LEAST

    ratio: kept.Ratio = 0.01
    """k as a share of all numbers, rounded up."""
    coding: Coding = "rice"
    """How places are written: ``rice``: gaps, padded to the most that they can take; ``enumerative``: the number of
    the set of places; ``index``: each place; ``bitmap``: a bit for each number."""

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
