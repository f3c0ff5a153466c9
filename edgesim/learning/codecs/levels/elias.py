"""Elias' gamma code of sparse levels: for each bucket a flag, then the shorter of this form and the fixed one.

This form is 32 bits of the scale, gamma(non-zeros + 1), and of each non-zero level gamma(gap), its sign and
gamma(|level|). A gap is the distance to the non-zero level before it in its bucket, or to one place before the bucket.
P. Elias, "Universal codeword sets and representations of the integers", IEEE Trans. Information Theory, 1975; QSGD
(Alistarh et al., NIPS 2017), section 3, has Elias' recursive code in its place.
"""

import numpy as np

from edgesim.base.arrays import Integers, Singles
from edgesim.learning.codecs.levels import fixed
from edgesim.learning.codecs.message import Message, Reader, digits, floats, joined, of_text, written


def gamma_bits(numbers: Integers) -> Integers:
    """Bits of the gamma codes of whole numbers from 1 on: 2 floor(log2 n) + 1 each."""
    return np.asarray(2 * np.frexp(numbers)[1] - 1, dtype=np.int64)


def gamma(number: int) -> str:
    """The gamma code of a whole number from 1 on: as many zeros as it has further bits, then the number."""
    return digits(number, 2 * number.bit_length() - 1)


def size_bits(levels: Integers, bucket: int, s: int) -> int:
    """Bits of levels from -s to s, [d], in buckets."""
    places = np.flatnonzero(levels)
    number, count = places // bucket, -(-len(levels) // bucket)
    before = np.maximum(np.append(-1, places)[:-1], number * bucket - 1)
    of_levels = gamma_bits(places - before) + 1 + gamma_bits(np.abs(levels[places]))
    non_zeros, bits = np.bincount(number, minlength=count), np.bincount(number, of_levels, count).astype(np.int64)
    sizes = np.minimum(bucket, len(levels) - bucket * np.arange(count))
    return int((1 + 32 + np.minimum(sizes * fixed.width(s), gamma_bits(non_zeros + 1) + bits)).sum())


def write(levels: Integers, scales: Singles, bucket: int, s: int) -> Message:
    """The message of levels, [d], and the scale of each bucket, [ceil(d / bucket)]."""
    parts = []
    for number in range(len(scales)):
        within, scale = levels[number * bucket : (number + 1) * bucket], scales[number : number + 1]
        dense, sparse = fixed.write(within, scale, s), joined(floats(scale), _sparse(within))
        parts += [written(0, 1), dense] if len(dense) <= len(sparse) else [written(1, 1), sparse]
    return joined(*parts)


def read(reader: Reader, d: int, bucket: int, s: int) -> tuple[Integers, Singles]:
    """Levels and scales that `write` wrote."""
    levels, scales = np.zeros(d, dtype=np.int64), np.empty(-(-d // bucket), dtype=np.float32)
    for number in range(len(scales)):
        within, is_sparse = levels[number * bucket : (number + 1) * bucket], reader.whole(1)
        if is_sparse:
            scales[number : number + 1] = reader.floats(1)
            _read_sparse(reader, within)
        else:
            within[:], scales[number : number + 1] = fixed.read(reader, len(within), bucket, s)
    return levels, scales


def _sparse(levels: Integers) -> Message:
    places = np.flatnonzero(levels)
    numbers = zip(np.diff(places, prepend=-1).tolist(), levels[places].tolist(), strict=True)
    of_levels = (f"{gamma(gap)}{int(level < 0)}{gamma(abs(level))}" for gap, level in numbers)
    return of_text(gamma(len(places) + 1) + "".join(of_levels))


def _read_sparse(reader: Reader, levels: Integers) -> None:
    """Fill in the levels, zeros until then, that `_sparse` wrote."""
    place = -1
    for _ in range(_gamma_number(reader) - 1):
        place += _gamma_number(reader)
        sign = -1 if reader.whole(1) else 1
        levels[place] = sign * _gamma_number(reader)


def _gamma_number(reader: Reader) -> int:
    further = reader.run(0)
    return (1 << further) + reader.whole(further)
