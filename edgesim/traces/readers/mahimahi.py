"""mahimahi packet-opportunity files: each line is the millisecond at which 1,500 bytes can be sent.

Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015.
"""

from pathlib import Path

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.traces.readers.results import Capacity

PACKET_BITS = 12_000.0
_MS_PER_S = 1000
_YEAR_MS = 366 * 86_400 * _MS_PER_S


def read_mahimahi(path: Path) -> Capacity:
    """Read the capacity per millisecond up to the instant of the last line, at which mahimahi repeats the recording.

    An opportunity at m ms counts as capacity of the millisecond that ends at m, so that its packet is sent by m; one at
    0 counts for the first millisecond. Raises `EdgesimError` that names the file, the line and what was expected.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EdgesimError(f"{path}: not a readable text file: {error}") from None
    at_ms: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        if not text.isdecimal():
            raise EdgesimError(f"{path}: line {number}: expected whole milliseconds, 0 or more (got {text:.60})")
        # Compared as a float, since int() refuses numbers of more than 4,300 digits.
        if float(text) > _YEAR_MS:
            raise EdgesimError(f"{path}: line {number}: expected milliseconds of at most a year (got {text:.60})")
        if at_ms and int(text) < at_ms[-1]:
            raise EdgesimError(f"{path}: line {number}: expected a time not before the line above (got {text})")
        at_ms.append(int(text))
    if not at_ms or at_ms[-1] == 0:
        raise EdgesimError(f"{path}: holds no opportunity after 0 ms, so no upload would ever end")
    ends_ms, packets = np.unique(np.maximum(at_ms, 1), return_counts=True)
    # One row at the start of each busy millisecond, and one at the start of each idle stretch.
    begins_ms = ends_ms - 1
    idle_ms = np.setdiff1d(np.append(0, ends_ms[:-1]), begins_ms)
    t_ms = np.concatenate([begins_ms, idle_ms])
    bps = np.concatenate([packets * PACKET_BITS * _MS_PER_S, np.zeros(len(idle_ms))])
    order = np.argsort(t_ms)
    return Capacity({path.stem: (t_ms[order] / _MS_PER_S, bps[order])}, {path.stem: at_ms[-1] / _MS_PER_S})
