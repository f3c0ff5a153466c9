"""Rice's code of the gaps between ascending places, padded to the most that it can take.

A gap g is floor(g / 2^r) ones, a zero, and r bits. The ones of all gaps are floor((d - k) / 2^r) at most, so that the
size is known before the places are. R. F. Rice, "Some practical universal noiseless coding techniques", JPL 79-22,
1979.
"""

from bisect import bisect_right
from functools import lru_cache

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.learning.codecs.message import Message, Reader, digits, of_text


def parameter(d: int, k: int) -> int:
    """r: the number of low bits of a gap that makes the padded size least, the smaller of equals.

    One bit more costs k bits and saves half of the ones, rounded up: it pays as long as (d - k) >> r exceeds 2 k.
    """
    return ((d - k) // (2 * k + 1)).bit_length()


def size_bits(d: int, k: int) -> int:
    """Bits of k among d places."""
    return _padded(d, k, parameter(d, k))


def write(places: Integers, d: int) -> Message:
    """The message of ascending places among d."""
    low = parameter(d, len(places))
    gaps = (np.diff(places, prepend=-1) - 1).tolist()
    text = "".join("1" * (gap >> low) + "0" + digits(gap & (1 << low) - 1, low) for gap in gaps)
    return of_text(text.ljust(_padded(d, len(places), low), "0"))


def read(reader: Reader, d: int, k: int) -> Integers:
    """The k places among d that `write` wrote."""
    low, start = parameter(d, k), reader.place
    gaps = [(reader.run(1) << low) + reader.whole(low) for _ in range(k)]
    reader.place = start + _padded(d, k, low)
    return np.cumsum(np.array(gaps, dtype=np.int64) + 1) - 1


def most(d: int, bits: int, each: int) -> int:
    """Greatest number of places among d that fit into so many bits, with ``each`` bits more for each place.

    For the r of that number, k (each + r + 1) + floor((d - k) / 2^r) <= bits solved for k.
    """
    sizes, parameters = _steps(d, each)
    step = bisect_right(sizes, bits) - 1
    if step < 0:
        return 0
    low = parameters[step]
    k = ((bits + 1 << low) - 1 - d) // ((each + low + 1 << low) - 1)
    return k if k < d else d


@lru_cache(maxsize=32)
def _steps(d: int, each: int) -> tuple[list[int], list[int]]:
    """The smallest sizes of k among d places for which `parameter` is one r, ascending, and these r."""
    lows = {max(1, (d - (1 << low)) // ((2 << low) + 1) + 1): low for low in range(d.bit_length(), -1, -1)}
    firsts = {k: low for k, low in lows.items() if k <= d}
    return [k * each + _padded(d, k, low) for k, low in firsts.items()], [*firsts.values()]


def _padded(d: int, k: int, low: int) -> int:
    return k * (low + 1) + (d - k >> low)
