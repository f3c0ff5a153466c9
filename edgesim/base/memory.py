"""Free memory, checked before a file whose header states a size is given that much."""

import os
from pathlib import Path

from edgesim.base.errors import EdgesimError


def free_bytes() -> int:
    """Memory in bytes that a process could get now; the machine's total where the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_fits(needed_bytes: int, what: str) -> None:
    """Raises `EdgesimError` if ``what`` (a file, or a part of it) needs more memory than is free."""
    if needed_bytes > (free := free_bytes()):
        raise EdgesimError(f"{what}: needs {needed_bytes / 1e9:.3g} GB of memory, and {free / 1e9:.3g} GB are free")
