"""The registry of allocators, which share a band among the uploads of a round: one file and one line each.

`equal_finish` is not an allocator to choose: ``round.leftover = "equal_finish"`` applies it to least bandwidths.
"""

from collections.abc import Callable

from edgesim.base.arrays import Floats
from edgesim.radio.allocators import equal_share, least, proportional
from edgesim.radio.allocators.request import Request

Allocator = Callable[[Request], Floats]

ALLOCATORS: dict[str, Allocator] = {
    "least": least.allocate,
    "equal_share": equal_share.allocate,
    "proportional": proportional.allocate,
}

__all__ = ["ALLOCATORS", "Allocator", "Request"]
