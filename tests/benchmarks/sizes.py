"""How large benchmarks are: so that their figures count, or at the least so that all of them still run through."""

import os
from typing import TypeVar

T = TypeVar("T")

IS_LEAST = os.environ.get("EDGESIM_BENCH") == "least"
"""Whether every benchmark runs once at its least size, as `make test-all` does; its figures then say nothing."""


def size(full: T, least: T) -> T:
    """Choose the size of a benchmark: ``least`` with ``EDGESIM_BENCH=least``, otherwise ``full``."""
    return least if IS_LEAST else full
