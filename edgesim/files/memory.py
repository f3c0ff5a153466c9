"""Free memory, asked before files that say how large they are get what they ask for."""

import os
from pathlib import Path

from edgesim.errors import EdgesimError


def free_bytes() -> int:
    """Memory that this machine could give to a process now; all of it where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**40


def check_fits(needed_bytes: int, what: str) -> None:
    """Raises `EdgesimError` for a file, or a part of it, that asks for more memory than is free."""
    if needed_bytes > (free := free_bytes()):
        raise EdgesimError(f"{what}: needs {needed_bytes / 1e9:.3g} GB of memory, and {free / 1e9:.3g} GB are free")
