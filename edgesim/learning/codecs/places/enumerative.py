"""Number of a set of k among d places in the list of all such sets, by the combinatorial number system.

No code of fixed size is shorter. T. Cover, "Enumerative source encoding", IEEE Trans. Information Theory, 1973.
"""

import math

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.learning.codecs.message import Message, Reader, digits, of_text

EXACT = 4096
"""Places up to which sizes are exact and sets are written; beyond, sizes come from logarithms."""
_FEW = 16
_TYPICAL = 8
"""Bits of a place among those of a few per cent, at which the search begins."""
_ROUNDED = 1.01
"""Bits by which a size may grow less than its logarithm, which are rounded."""
_LN2 = math.log(2)
_FLAT = 0.5
"""Bits of one place more below which sizes are halved, not followed by their slope."""


def size_bits(d: int, k: int) -> int:
    """Bits of k among d places: log2 of the number of sets, rounded up."""
    # Logarithms are off by some 1e-8, and few places may have a power of two of sets: 2^20 for one among 2^20.
    if d <= EXACT or k <= _FEW or d - k <= _FEW:
        return (math.comb(d, k) - 1).bit_length()
    return math.ceil((math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)) / _LN2)


def most(d: int, bits: int, each: int) -> int:
    """Greatest number of places among d that fit into so many bits, with ``each`` bits more for each place.

    Towards all d places sizes may shrink again; there all of them are the greatest number that fits. Newton's steps
    find it among fewer, of which one more takes ``each`` + log2((d - k) / (k + 1)) bits, give or take one for rounding.
    """
    if d * each <= bits:
        return d
    few, many, k = 0, d, max(0, bits) // (each + _TYPICAL)
    while many - few > 1:
        k = min(max(k, few + 1), many - 1)
        left_bits = bits - k * each - size_bits(d, k)
        one_more_bits = each + math.log2((d - k) / (k + 1))
        if 0 <= left_bits < one_more_bits - _ROUNDED:
            return k
        few, many = (k, many) if left_bits >= 0 else (few, k)
        k = k + math.floor(left_bits / one_more_bits) if one_more_bits > _FLAT else (few + many) // 2
    return few


def write(places: Integers, d: int) -> Message:
    """The message of ascending places among d."""
    return of_text(digits(number_of(places), size_bits(d, len(places))))


def read(reader: Reader, d: int, k: int) -> Integers:
    """The k places among d that `write` wrote."""
    return set_of(reader.whole(size_bits(d, k)), d, k)


def number_of(places: Integers) -> int:
    """Number, from 0, of a set of ascending places among all sets of as many."""
    return sum(math.comb(place, turn) for turn, place in enumerate(places.tolist(), 1))


def set_of(number: int, d: int, k: int) -> Integers:
    """The set of k places among d that has a number, ascending."""
    places = np.empty(k, dtype=np.int64)
    place, sets = d - 1, math.comb(d - 1, k)
    for turn in range(k, 0, -1):
        while sets > number:
            # From comb(place, turn) to comb(place - 1, turn).
            sets = sets * (place - turn) // place
            place -= 1
        number -= sets
        places[turn - 1] = place
        # From comb(place, turn) to comb(place - 1, turn - 1).
        sets = sets * turn // place if place else 1
        place -= 1
    return places
