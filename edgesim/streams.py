"""Named random streams: every draw is a function of (seed, name, device, round), never of call order.

A draw is one block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
the key is a digest of (seed, name), the counter is (device, round, index). Two policies therefore see the same
world, and a new draw somewhere shifts no draw elsewhere.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10
_AT_ONCE = 1 << 14


def philox4x32(counter: tuple[NDArray[np.uint64], ...], key: tuple[int, int]) -> tuple[NDArray[np.uint64], ...]:
    """Philox4x32-10 over arrays: four 32-bit counter words (as uint64 arrays that broadcast) and a key.

    Returns four arrays of 32-bit words, held in uint64.
    """
    shape = np.broadcast_shapes(*(word.shape for word in counter))
    flat = [np.broadcast_to(word, shape).reshape(-1) for word in counter]
    words = np.empty((4, flat[0].size), dtype=np.uint64)
    # In pieces that stay in a processor's cache, which a million devices would not.
    for first in range(0, words.shape[1], _AT_ONCE):
        piece = slice(first, first + _AT_ONCE)
        for word, values in zip(words[:, piece], flat, strict=True):
            word[:] = values[piece]
        _mix(words[:, piece], key)
    return tuple(word.reshape(shape) for word in words)


def _mix(words: NDArray[np.uint64], key: tuple[int, int]) -> None:
    """The ten rounds, in place on four words, [4, n]."""
    c0, c1, c2, c3 = words
    left, right = np.empty_like(c0), np.empty_like(c0)
    k0, k1 = key
    for _ in range(_ROUNDS):
        np.multiply(c0, _MULTIPLIERS[0], out=left)
        np.multiply(c2, _MULTIPLIERS[1], out=right)
        for word, high, low, k in ((c0, right, c1, k0), (c2, left, c3, k1)):
            np.right_shift(high, _HALF, out=word)
            word ^= low
            word ^= np.uint64(k)
        np.bitwise_and(right, _LOW, out=c1)
        np.bitwise_and(left, _LOW, out=c3)
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF


class Streams:
    """All random numbers of one run, addressed by name, device and round."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def _key(self, name: str) -> tuple[int, int]:
        digest = hashlib.blake2b(f"{self.seed}/{name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")

    def _words(self, name: str, devices: ArrayLike, round: ArrayLike, blocks: int) -> NDArray[np.uint64]:
        """Two 64-bit words per block: shape broadcast(devices, round) + (2 * blocks,)."""
        device_word, round_word = np.broadcast_arrays(
            np.asarray(devices, dtype=np.uint64), np.asarray(round, dtype=np.uint64)
        )
        index = np.arange(blocks, dtype=np.uint64)
        zero = np.zeros(1, dtype=np.uint64)
        words = philox4x32((device_word[..., None], round_word[..., None], index, zero), self._key(name))
        pairs = np.stack([words[0] << _HALF | words[1], words[2] << _HALF | words[3]], axis=-1)
        return pairs.reshape(*device_word.shape, 2 * blocks)

    def uniform(
        self, name: str, devices: ArrayLike, round: ArrayLike = 0, count: int | None = None
    ) -> NDArray[np.float64]:
        """Uniforms in the open interval (0, 1), of 52 bits.

        ``devices`` and ``round`` are non-negative integers below 2^32 that broadcast together; the result has
        their shape, with an axis of ``count`` independent draws appended when it is given.
        """
        wanted = 1 if count is None else count
        words = self._words(name, devices, round, -(-wanted // 2))[..., :wanted]
        values = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return values[..., 0] if count is None else values

    def normal(
        self, name: str, devices: ArrayLike, round: ArrayLike = 0, count: int | None = None
    ) -> NDArray[np.float64]:
        """Standard normal draws; arguments and shape as in `uniform`."""
        return np.asarray(ndtri(self.uniform(name, devices, round, count)))

    def exponential(
        self, name: str, devices: ArrayLike, round: ArrayLike = 0, count: int | None = None
    ) -> NDArray[np.float64]:
        """Exponential draws of mean 1; arguments and shape as in `uniform`."""
        return -np.log(self.uniform(name, devices, round, count))

    def seeds(self, name: str, devices: ArrayLike, round: ArrayLike = 0) -> NDArray[np.int64]:
        """Seeds in [0, 2^63) for generators of other libraries; shape broadcast(devices, round)."""
        return (self._words(name, devices, round, 1)[..., 0] >> np.uint64(1)).astype(np.int64)

    def generator(self, name: str, device: int = 0, round: int = 0) -> np.random.Generator:
        """A NumPy generator for draws of unforeseeable number made while a run is set up."""
        return next(self.generators(name, [device], round))

    def generators(self, name: str, devices: ArrayLike, round: int = 0) -> Iterator[np.random.Generator]:
        """The `generator` of each of several devices, in a fraction of the time that one by one they would take."""
        for seed in self.seeds(name, devices, round).tolist():
            yield np.random.Generator(np.random.Philox(seed))
