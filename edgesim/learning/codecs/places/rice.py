"""Rice's code of the gaps between ascending places, padded to the most that it can take.

A gap g is floor(g / 2^r) ones, a zero, and r bits. The ones of all gaps are floor((d - k) / 2^r) at most, so that the
size is known before the places are. R. F. Rice, "Some practical universal noiseless coding techniques", JPL 79-22,
1979.
"""

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.learning.codecs.message import Message, Reader, joined, written


def parameter(d: int, k: int) -> int:
    """r: the number of low bits of a gap that makes the padded size least, the smaller of equals."""
    return min(range(d.bit_length() + 1), key=lambda low: _padded(d, k, low))


def size_bits(d: int, k: int) -> int:
    """Bits of k among d places."""
    return _padded(d, k, parameter(d, k))


def write(places: Integers, d: int) -> Message:
    """The message of ascending places among d."""
    low = parameter(d, len(places))
    gaps = np.diff(places, prepend=-1) - 1
    parts = [part for gap in gaps.tolist() for part in (_unary(gap >> low), written(gap & (1 << low) - 1, low))]
    message = joined(*parts)
    return joined(message, np.zeros(_padded(d, len(places), low) - len(message), dtype=np.uint8))


def read(reader: Reader, d: int, k: int) -> Integers:
    """The k places among d that `write` wrote."""
    low, start = parameter(d, k), reader.place
    gaps = [(reader.run(1) << low) + reader.whole(low) for _ in range(k)]
    reader.place = start + _padded(d, k, low)
    return np.cumsum(np.array(gaps, dtype=np.int64) + 1) - 1


def _padded(d: int, k: int, low: int) -> int:
    return k * (low + 1) + (d - k >> low)


def _unary(count: int) -> Message:
    message = np.ones(count + 1, dtype=np.uint8)
    message[-1] = 0
    return message
