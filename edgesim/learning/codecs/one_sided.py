"""Of the largest |numbers| those of one sign, all at their mean: the sign whose mean |number| is larger.

Amiri, Gündüz, Kulkarni, Poor, "Convergence of update aware device scheduling for federated learning at the wireless
edge", IEEE TWC 2021. The charge is theirs, 33 bits beside the number of a set of k places. The sign stands in that of
the mean, so that the 33rd bit is left for the sets of fewer than k places: up to a third of all places there are no
more sets of at most k of them than twice those of k. Beyond, there is a bit for each place.
"""

import bisect
import math

import numpy as np

from edgesim.base.arrays import Singles
from edgesim.learning.codecs import kept
from edgesim.learning.codecs.message import Message, Reader, digits, floats, joined, of_text
from edgesim.learning.codecs.places import enumerative
from edgesim.learning.codecs.scale import as_sent
from edgesim.learning.torch_types import Tensor


def bits(d: int, k: int) -> int:
    """Bits of d numbers of which the k largest are looked at."""
    return 33 + (enumerative.size_bits(d, k) if k <= _few(d) else d)


def most(d: int, bits: int) -> int:
    """Greatest k of d numbers that fits into so many bits; 0 where none does."""
    if bits >= 33 + d:
        return d
    return bisect.bisect_right(range(1, _few(d) + 1), bits - 33, key=lambda k: enumerative.size_bits(d, k))


def _few(d: int) -> int:
    return (d + 1) // 3


def coded(vector: Tensor, k: int) -> Tensor:
    """The mean of one sign at its places among the k largest |numbers|, 0 elsewhere, [d]; positive where both tie."""
    places = kept.largest(vector.abs(), k)
    values = vector[places]
    means = [as_sent(values[of].double().sum().reshape(1) / max(int(of.sum()), 1)) for of in (values > 0, values < 0)]
    is_positive = bool(means[0] >= -means[1])
    at = places[values > 0 if is_positive else values < 0]
    return vector.new_zeros(len(vector)).index_fill_(0, at, float(means[0 if is_positive else 1]))


def write(vector: Tensor, k: int) -> Message:
    """The message of a vector, [d]."""
    d, values = len(vector), coded(vector, k).numpy()
    places = np.flatnonzero(values)
    mean = floats(values[places[:1]] if len(places) else np.zeros(1, dtype=np.float32))
    if k > _few(d):
        return joined(mean, of_text("0"), (values != 0).astype(np.uint8))
    number = sum(math.comb(d, fewer) for fewer in range(len(places))) + enumerative.number_of(places)
    return joined(mean, of_text(digits(number, bits(d, k) - 32)))


def read(reader: Reader, d: int, k: int) -> Singles:
    """The values that a message holds, [d]."""
    mean = reader.floats(1)
    if k > _few(d):
        reader.whole(1)
        return np.where(reader.numbers(d, 1), mean, np.float32(0))
    number, sent = reader.whole(bits(d, k) - 32), 0
    while number >= (sets := math.comb(d, sent)):
        number, sent = number - sets, sent + 1
    values = np.zeros(d, dtype=np.float32)
    values[enumerative.set_of(number, d, sent)] = mean
    return values
