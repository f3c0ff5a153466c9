"""Waypoints of BonnMotion's native format: a line for each node, with t, x and y again and again.

Aschenbruck, Ernst, Gerhards-Padilla, Schwamborn, "BonnMotion: a mobility scenario generation and analysis tool",
SIMUTools 2010.
"""

from itertools import groupby
from pathlib import Path

from edgesim.mobility.position_file import FARTHEST_M, PositionRows
from edgesim.traces.readers.packed import unpacked, words
from edgesim.traces.readers.position_log import PositionLog

_FIELDS = ("t", "x", "y")


def read_bonnmotion(path: Path) -> PositionRows:
    """Read the waypoints of all nodes, ``.movements`` packed or not.

    Raises `EdgesimError` that names the file, the line and what was expected.
    """
    log = PositionLog(path)
    with unpacked(path) as file:
        for node, (line, of_line) in enumerate(groupby(words(path, file), key=lambda word: word[0])):
            waypoint: list[float] = []
            for place, (_, word) in enumerate(of_line):
                field = _FIELDS[place % 3]
                waypoint.append(
                    log.seconds(line, field, word) if field == "t" else log.number(line, field, word, FARTHEST_M)
                )
                if len(waypoint) == 3:
                    log.add(line, str(node), *waypoint)
                    waypoint = []
            if waypoint:
                raise log.refuse(line, f"expected t, x and y again and again (got {place + 1} numbers)")
    return log.rows("lines of t, x and y", has_keys=False)
