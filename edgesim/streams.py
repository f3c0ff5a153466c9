"""Named random streams: every draw is a function of (seed, name, device, round), never of call order.

A draw is one block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
the key is a digest of (seed, name), the counter is (device, round, index). Two policies therefore see the same
world, and adding a draw does not change any other draw.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from edgesim.base.arrays import Floats, Integers

_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], dtype=np.uint64)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10
_AT_ONCE = 1 << 14
"""Blocks that are mixed at once: each costs a quarter of one among a thousand."""
_AHEAD, _ROUNDS_AHEAD = 1 << 12, 16
"""Least blocks and rounds that are drawn ahead, as long as they are mixed at once."""
_FEW, _UNASKED = 1 << 13, 1 << 10
"""Blocks of a round up to which those of later rounds are drawn with it, and those of them that nobody asked for."""
_ZERO = np.zeros(1, dtype=np.uint64)
_NONE = 0, np.empty((0, 1, 0), dtype=np.uint64)


def _blocks(count: int | None) -> int:
    """Blocks of so many 64-bit words, or of one word when absent."""
    return 1 if count is None else -(-count // 2)


def philox4x32(counter: tuple[NDArray[np.uint64], ...], key: tuple[int, int]) -> tuple[NDArray[np.uint64], ...]:
    """Philox4x32-10 over arrays: four 32-bit counter words (as uint64 arrays that broadcast) and a key.

    Returns four arrays of 32-bit words, held in uint64.
    """
    shape = np.broadcast_shapes(*[word.shape for word in counter])
    # Words 0 and 2, then 1 and 3: a round treats both words of a pair alike, in one call.
    words = np.empty((2, 2, *shape), dtype=np.uint64)
    for place, word in enumerate(counter):
        words[place % 2, place // 2] = word
    pairs, keys = words.reshape(2, 2, -1), _round_keys(key)
    # In pieces that fit into the processor's cache, unlike the words of a million devices.
    for first in range(0, pairs.shape[-1], _AT_ONCE):
        _mix(pairs[..., first : first + _AT_ONCE], keys)
    return words[0, 0], words[1, 0], words[0, 1], words[1, 1]


@lru_cache(maxsize=1024)
def _round_keys(key: tuple[int, int]) -> NDArray[np.uint64]:
    """The key of each round, [10, 2, 1]."""
    first, second = key
    rounds = range(_ROUNDS)
    keys = [[(first + turn * _WEYL[0]) & 0xFFFFFFFF, (second + turn * _WEYL[1]) & 0xFFFFFFFF] for turn in rounds]
    return np.array(keys, dtype=np.uint64)[..., None]


def _mix(words: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
    """The ten rounds, in place on pairs of words, [2, 2, n]."""
    even, odd = words
    product = np.empty_like(even)
    crossed = product[::-1]
    for key in keys:
        np.multiply(even, _MULTIPLIERS, out=product)
        np.right_shift(crossed, _HALF, out=even)
        even ^= odd
        even ^= key
        np.bitwise_and(crossed, _LOW, out=odd)


Law = Callable[[NDArray[np.uint64]], NDArray[Any]]


def _uniform(words: NDArray[np.uint64]) -> Floats:
    values = (words >> np.uint64(12)).astype(np.float64)
    values += 0.5
    values *= 2.0**-52
    return np.asarray(values)


def _normal(words: NDArray[np.uint64]) -> Floats:
    return np.asarray(ndtri(_uniform(words)))


def _exponential(words: NDArray[np.uint64]) -> Floats:
    return np.asarray(-np.log(_uniform(words)))


def _seeds(words: NDArray[np.uint64]) -> Integers:
    return (words >> np.uint64(1)).astype(np.int64)


class Streams:
    """All random numbers of one run, addressed by name, device and round."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._keys: dict[str, tuple[int, int]] = {}
        self._ahead: dict[tuple[Law, str, int | None], tuple[int, NDArray[Any]]] = {}
        """By law, name and count, draws of the first devices: the first round, and draws, [rounds, devices, ...]."""

    def _key(self, name: str) -> tuple[int, int]:
        if name not in self._keys:
            digest = hashlib.blake2b(f"{self.seed}/{name}".encode(), digest_size=8).digest()
            self._keys[name] = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")
        return self._keys[name]

    def _draws(
        self, law: Law, name: str, devices: ArrayLike, round: ArrayLike, count: int | None, first_pair: ArrayLike = 0
    ) -> NDArray[Any]:
        """Draws of a law from 64-bit words, two of which are one block; shape and arguments as in `uniform`.

        A few draws of a round are drawn together with those of later rounds.
        """
        from_first = isinstance(first_pair, int) and first_pair == 0
        if from_first and isinstance(devices, np.ndarray) and 0 < devices.size <= _FEW:
            begin, ahead = self._ahead.get((law, name, count), _NONE)
            if isinstance(round, int) and begin <= round < begin + len(ahead):
                # To look for the largest id first takes as long as the rest.
                try:
                    return np.asarray(ahead[round - begin][devices])
                except IndexError:
                    pass
            most = int(devices.max())
            first, last = (round, round) if isinstance(round, int) else (int(np.min(round)), int(np.max(round)))
            blocks = (1 << most.bit_length()) * _blocks(count)
            if 0 < blocks <= min(_FEW, devices.size * _blocks(count) + _UNASKED):
                begin, ahead = self._ahead_of(law, name, most, first, count)
                if last < begin + len(ahead):
                    # A row of one round first: to index by both at once takes several times as long.
                    if isinstance(round, int):
                        return np.asarray(ahead[round - begin][devices])
                    return np.asarray(ahead[np.subtract(round, begin), devices])
        return law(self._words(name, devices, round, count, first_pair))

    def _words(
        self, name: str, devices: ArrayLike, round: ArrayLike, count: int | None, first_block: ArrayLike = 0
    ) -> NDArray[np.uint64]:
        blocks = _blocks(count)
        device_word, round_word = np.asarray(devices, dtype=np.uint64), np.asarray(round, dtype=np.uint64)
        index = np.add(np.asarray(first_block, dtype=np.uint64)[..., None], np.arange(blocks, dtype=np.uint64))
        words = philox4x32((device_word[..., None], round_word[..., None], index, _ZERO), self._key(name))
        pairs = np.empty((2, *words[0].shape), dtype=np.uint64)
        for half, pair in enumerate(pairs):
            np.left_shift(words[2 * half], _HALF, out=pair)
            pair |= words[2 * half + 1]
        # Of one block the words stay in two stretches of memory, which is quicker for what follows.
        in_order = np.moveaxis(pairs, 0, -1).reshape(*pairs.shape[1:-1], 2 * blocks)
        return in_order[..., 0] if count is None else in_order[..., :count]

    def _ahead_of(self, law: Law, name: str, device: int, round: int, count: int | None) -> tuple[int, NDArray[Any]]:
        """Draws ahead with those of a device and a round: the first round, and draws, [rounds, devices, ...]."""
        begin, ahead = self._ahead.get((law, name, count), _NONE)
        if not (begin <= round < begin + len(ahead) and device < ahead.shape[1]):
            width = max(ahead.shape[1], 1 << device.bit_length())
            blocks = width * _blocks(count)
            length = max(1, min(_AT_ONCE // blocks, max(_AHEAD // blocks, _ROUNDS_AHEAD)))
            begin = round // length * length
            ahead = law(self._words(name, np.arange(width), np.arange(begin, begin + length)[:, None], count))
            self._ahead[law, name, count] = begin, ahead
        return begin, ahead

    def uniform(
        self, name: str, devices: ArrayLike, round: ArrayLike = 0, count: int | None = None, first_pair: ArrayLike = 0
    ) -> Floats:
        """Uniforms in the open interval (0, 1), of 52 bits.

        ``devices``, ``round`` and ``first_pair`` are non-negative integers below 2^32 that broadcast together; the
        result has their shape, with an axis of ``count`` independent draws appended when it is given. They begin with
        draw 2 ``first_pair`` of the device and round.
        """
        return self._draws(_uniform, name, devices, round, count, first_pair)

    def normal(
        self, name: str, devices: ArrayLike, round: ArrayLike = 0, count: int | None = None, first_pair: ArrayLike = 0
    ) -> Floats:
        """Standard normal draws; arguments and shape as in `uniform`."""
        return self._draws(_normal, name, devices, round, count, first_pair)

    def exponential(
        self, name: str, devices: ArrayLike, round: ArrayLike = 0, count: int | None = None, first_pair: ArrayLike = 0
    ) -> Floats:
        """Exponential draws of mean 1; arguments and shape as in `uniform`."""
        return self._draws(_exponential, name, devices, round, count, first_pair)

    def seeds(self, name: str, devices: ArrayLike, round: ArrayLike = 0) -> Integers:
        """Seeds in [0, 2^63) for generators of other libraries; shape broadcast(devices, round)."""
        return self._draws(_seeds, name, devices, round, None)

    def generator(self, name: str, device: int = 0, round: int = 0) -> np.random.Generator:
        """A NumPy generator, for set-up code that needs an unknown number of draws."""
        return next(self.generators(name, [device], round))

    def generators(self, name: str, devices: ArrayLike, round: int = 0) -> Iterator[np.random.Generator]:
        """The `generator` of each of several devices, in a fraction of the time of making them one by one."""
        for seed in self.seeds(name, devices, round).tolist():
            yield np.random.Generator(np.random.Philox(seed))
