"""Loading of large libraries, and leaving them."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector off within this context.

    What modules make when they are loaded stays, and the collector would search it again and again: an eighth of the
    time in which PyTorch loads.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def ends_at_once() -> None:
    """Let this process end without searching for garbage in all that it has loaded, which goes with it.

    The interpreter would search several times: 0.8 s with PyTorch, 0.4 s without.
    """
    atexit.register(gc.freeze)
