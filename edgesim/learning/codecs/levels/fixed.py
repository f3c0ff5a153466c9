"""Scales of 32 bits, then all levels with the same number of bits."""

from edgesim.base.arrays import Integers, Singles
from edgesim.learning.codecs.message import Message, Reader, floats, joined, written


def width(s: int) -> int:
    """Bits of a level from -s to s."""
    return (2 * s).bit_length()


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
