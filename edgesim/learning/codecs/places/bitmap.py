"""A bit for each place, whether it is one of the set."""

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.learning.codecs.message import Message, Reader


def size_bits(d: int, k: int) -> int:
    """Bits of k among d places."""
    return d


def write(places: Integers, d: int) -> Message:
    """The message of ascending places among d."""
    message = np.zeros(d, dtype=np.uint8)
    message[places] = 1
    return message


def read(reader: Reader, d: int, k: int) -> Integers:
    """The places among d that `write` wrote."""
    return np.flatnonzero(reader.numbers(d, 1))


def most(d: int, bits: int, each: int) -> int:
    """Greatest number of places among d that fit into so many bits, with ``each`` bits more for each place."""
    return max(0, min((bits - d) // each, d))
