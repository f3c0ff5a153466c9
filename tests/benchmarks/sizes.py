"""How large benchmarks are: so that figures count, or so that all of them just run through; and contenders in turns."""

import os
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

IS_LEAST = os.environ.get("EDGESIM_BENCH") == "least"
"""Whether every benchmark runs once at its least size, as `make test-all` does; its figures then say nothing."""


def size(full: T, least: T) -> T:
    """Choose the size of a benchmark: ``least`` with ``EDGESIM_BENCH=least``, otherwise ``full``."""
    return least if IS_LEAST else full


def wall_s(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that some work takes, by a clock."""
    started = clock()
    work()
    return clock() - started


def cpu_s(work: Callable[[], object]) -> float:
    """Processor seconds that some work takes in this process."""
    return wall_s(work, time.process_time)


def processor_s(work: Callable[[], object]) -> float:
    """Processor seconds that some work takes, those of the processes that it starts and ends among them."""
    before = os.times()
    work()
    return sum(after - began for began, after in zip(before[:4], os.times()[:4], strict=True))


def least_cpu_s(
    contenders: Mapping[str, Callable[[], object]],
    turns: int,
    seconds: float = 0.0,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """The least processor time of each, or time by another clock, of so many turns and for so many seconds at least.

    They take turns, so that other work on the machine harms all alike.
    """
    least, end = dict.fromkeys(contenders, float("inf")), time.perf_counter() + seconds
    while turns > 0 or time.perf_counter() < end:
        turns -= 1
        for name, contender in contenders.items():
            least[name] = min(least[name], wall_s(contender, clock))
    return least
