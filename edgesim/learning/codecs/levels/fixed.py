"""Scales of 32 bits, then all levels with the same number of bits."""

import math

from edgesim.base.arrays import Integers, Singles
from edgesim.learning.codecs.message import Message, Reader, floats, joined, written

NARROWEST, WIDEST = 2, 16
"""Fewest and most bits of a level."""


def width(s: int) -> int:
    """Bits of a level from -s to s."""
    return (2 * s).bit_length()


def most_levels(width: int) -> int:
    """s: most levels on each side of 0 that so many bits tell apart."""
    return (1 << width - 1) - 1


def rounded_up(s: float) -> int:
    """Fewest of the levels that a whole number of bits tells apart, not fewer than ``s``."""
    width = max(NARROWEST, math.ceil(math.log2(s + 1) - 1e-12) + 1)
    return most_levels(min(width, WIDEST))


def size_bits(d: int, bucket: int, s: int) -> int:
    """Bits of d levels in buckets."""
    return 32 * -(-d // bucket) + d * width(s)


def write(levels: Integers, scales: Singles, s: int) -> Message:
    """The message of levels, [d], and the scale of each bucket, [ceil(d / bucket)]."""
    return joined(floats(scales), written(levels + s, width(s)))


def read(reader: Reader, d: int, bucket: int, s: int) -> tuple[Integers, Singles]:
    """Levels and scales that `write` wrote."""
    scales = reader.floats(-(-d // bucket))
    return reader.numbers(d, width(s)) - s, scales
