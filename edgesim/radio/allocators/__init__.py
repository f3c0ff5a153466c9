"""The registry of allocators, which share a band among the uploads of a round: one file and one line each.

`equal_finish` is not an allocator to choose: ``round.leftover = "equal_finish"`` applies it to least bandwidths.
"""

from edgesim.base.registry import Registry
from edgesim.radio.allocators.allocator import Allocator, Request, Sizes
from edgesim.radio.allocators.equal_bits import EqualBits
from edgesim.radio.allocators.equal_share import EqualShare
from edgesim.radio.allocators.least import Least
from edgesim.radio.allocators.least_error import LeastError
from edgesim.radio.allocators.proportional import Proportional

_OWN: dict[str, type[Allocator]] = {
    "least": Least,
    "equal_share": EqualShare,
    "proportional": Proportional,
    "equal_bits": EqualBits,
    "least_error": LeastError,
}
ALLOCATORS = Registry("round.allocator", "allocators", Allocator, _OWN)

__all__ = ["ALLOCATORS", "Allocator", "Request", "Sizes"]
