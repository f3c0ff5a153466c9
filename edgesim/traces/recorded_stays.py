"""Stays of recorded devices: when their positions are known."""

from pathlib import Path

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.mobility.position_file import PositionRows
from edgesim.traces.intervals import Intervals, joined


def recorded_stays(rows: PositionRows, gap_s: float, path: Path) -> Intervals:
    """Periods in which each device is on its way: from row to row, unless more than ``gap_s`` lie between two.

    All devices have the length of the whole recording. Raises `EdgesimError`, which names the file, if no device has
    two rows so near to one another.
    """
    goes_on = (np.diff(rows.device) == 0) & (np.diff(rows.t_s) <= gap_s)
    begins = np.flatnonzero(np.append(True, ~goes_on))
    ends = np.flatnonzero(np.append(~goes_on, True))
    length_s = float(rows.t_s.max())
    found = joined(rows.device[begins], rows.t_s[begins], rows.t_s[ends], length_s, rows.device_count, str(path))
    if not len(found.device):
        raise EdgesimError(f"gap_s: no device of {path} has two rows at most {gap_s:g} s apart; give a longer gap_s")
    return Intervals(found.device, found.start_s, found.end_s, found.length_s, found.name, keys=rows.keys)
