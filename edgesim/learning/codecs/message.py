"""Bits of a message: numbers written with their highest bit first, and read back."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.base.arrays import Integers, Singles

Message = NDArray[np.uint8]
"""Zeros and ones in the order in which they are sent."""


def written(numbers: ArrayLike, width: int) -> Message:
    """Whole numbers from 0 to 2^width - 1, each with ``width`` bits, at most 63."""
    shifts = np.arange(width - 1, -1, -1)
    return (np.asarray(numbers, dtype=np.int64)[..., None] >> shifts & 1).astype(np.uint8).reshape(-1)


def digits(number: int, width: int) -> str:
    """The bits of a whole number from 0 as a text of ``width`` zeros and ones, any number of them."""
    return format(number, f"0{width}b") if width else ""


def of_text(text: str) -> Message:
    """The message of a text of zeros and ones."""
    return np.frombuffer(text.encode(), dtype=np.uint8) - ord("0")


def floats(numbers: Singles) -> Message:
    """Float32 numbers with 32 bits each."""
    return written(numbers.view(np.uint32), 32)


def joined(*parts: Message) -> Message:
    """One message of several parts."""
    return np.concatenate(parts)


def as_bytes(message: Message) -> bytes:
    """A message, the last byte filled up with zeros."""
    return np.packbits(message).tobytes()


def of_bytes(data: bytes, bits: int) -> Message:
    """The message of so many ``bits`` that `as_bytes` packed."""
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=bits)


class Reader:
    """Reads a message from its beginning on."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self._text = (message + ord("0")).tobytes().decode()
        self.place = 0
        """Bits read so far."""

    def numbers(self, count: int, width: int) -> Integers:
        """The next whole numbers of ``width`` bits, [count]."""
        begin, self.place = self.place, self.place + count * width
        bits = self._message[begin : self.place].reshape(count, width).astype(np.int64)
        return np.asarray(bits @ (1 << np.arange(width - 1, -1, -1, dtype=np.int64)))

    def whole(self, width: int) -> int:
        """The next whole number of any number of bits."""
        begin, self.place = self.place, self.place + width
        return int("0" + self._text[begin : self.place], 2)

    def floats(self, count: int) -> Singles:
        """The next float32 numbers, [count]."""
        return self.numbers(count, 32).astype(np.uint32).view(np.float32)

    def run(self, bit: int) -> int:
        """How often a bit comes next; the other bit behind it is read, too."""
        begin, end = self.place, self._text.index(str(1 - bit), self.place)
        self.place = end + 1
        return end - begin
