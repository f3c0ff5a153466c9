"""Each place as a number of its own."""

from edgesim.base.arrays import Integers
from edgesim.learning.codecs.message import Message, Reader, written


def size_bits(d: int, k: int) -> int:
    """Bits of k among d places."""
    return k * _width(d)


def write(places: Integers, d: int) -> Message:
    """The message of ascending places among d."""
    return written(places, _width(d))


def read(reader: Reader, d: int, k: int) -> Integers:
    """The k places among d that `write` wrote."""
    return reader.numbers(k, _width(d))


def most(d: int, bits: int, each: int) -> int:
    """Greatest number of places among d that fit into so many bits, with ``each`` bits more for each place."""
    return max(0, min(bits // (each + _width(d)), d))


def _width(d: int) -> int:
    return (d - 1).bit_length()
