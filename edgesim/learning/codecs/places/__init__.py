"""Ways to write which k of d places are meant."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from edgesim.base.arrays import Integers
from edgesim.learning.codecs.message import Message, Reader
from edgesim.learning.codecs.places import bitmap, enumerative, index, rice

Coding = Literal["rice", "enumerative", "index", "bitmap"]


@dataclass(frozen=True)
class Way:
    """One way, whose size depends on k and d alone."""

    size_bits: Callable[[int, int], int]
    """Of d and k."""
    write: Callable[[Integers, int], Message]
    """Of ascending places and d."""
    read: Callable[[Reader, int, int], Integers]
    """Of d and k."""
    most: Callable[[int, int, int], int]
    """Greatest k whose places among d fit into so many bits, with further bits for each place; 0 where none does."""


WAYS: dict[Coding, Way] = {
    "rice": Way(rice.size_bits, rice.write, rice.read, rice.most),
    "enumerative": Way(enumerative.size_bits, enumerative.write, enumerative.read, enumerative.most),
    "index": Way(index.size_bits, index.write, index.read, index.most),
    "bitmap": Way(bitmap.size_bits, bitmap.write, bitmap.read, bitmap.most),
}
"""Ways by the value of ``upload.coding``."""
