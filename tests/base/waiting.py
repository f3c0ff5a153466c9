"""Waiting for what other processes do."""

import time
from collections.abc import Callable
from subprocess import Popen


def wait_for(
    done: Callable[[], object], otherwise: str | Callable[[], str], *processes: Popen, limit_s: float = 240.0
) -> None:
    """Wait until something is done; fails with what is true otherwise, and where one of the processes ends before."""
    until_s = time.monotonic() + limit_s
    while not done():
        said = otherwise() if callable(otherwise) else otherwise
        assert time.monotonic() < until_s, said
        assert all(process.poll() is None for process in processes), said
        time.sleep(0.05)
