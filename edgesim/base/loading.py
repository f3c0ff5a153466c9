"""Loading of large libraries."""

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
