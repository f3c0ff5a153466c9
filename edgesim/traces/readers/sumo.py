"""Vehicles and persons of SUMO's FCD output: XML, or the CSV that SUMO or its xml2csv.py writes; packed or not.

Eclipse SUMO, "FCD output". Positions are those of the network, in metres.
"""

import csv
from collections.abc import Mapping
from io import BufferedIOBase
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.mobility.position_file import FARTHEST_M, PositionRows
from edgesim.traces.readers.packed import head, lines, unpacked
from edgesim.traces.readers.position_log import PositionLog
from edgesim.traces.readers.xml_events import is_xml, read_xml

TIME = "timestep_time"
_KINDS = ("vehicle", "person")
_EXPECTED = "vehicles or persons in time steps"


def read_sumo(path: Path) -> PositionRows:
    """Read the positions of all vehicles and persons; seconds count from the first time step.

    The id of a person gets ``person:`` in front, since a vehicle may have the same one. Raises `EdgesimError` that
    names the file, the line and what was expected.
    """
    log = _Log(path)
    if is_xml(head(path)):
        read_xml(path, _Steps(log))
    else:
        with unpacked(path) as file:
            _read_csv(path, file, log)
    return log.rows(_EXPECTED)


class _Log(PositionLog):
    """Rows whose seconds count from the first time step."""

    _begin_s: float | None = None
    _step_s = 0.0

    def step(self, line: int, text: str | None) -> None:
        """A time step begins; raises `EdgesimError` unless it does not lie before the last one."""
        t_s = self.seconds(line, "time", text)
        if self._begin_s is None:
            self._begin_s = t_s
        elif t_s - self._begin_s < self._step_s:
            raise self.refuse(line, f"time: expected time steps in order of time (got {t_s:g} behind a later one)")
        self._step_s = t_s - self._begin_s

    def place(self, line: int, kind: str, key: str | None, x: str | None, y: str | None) -> None:
        """A vehicle's or person's place at the time step."""
        if not key:
            raise self.refuse(line, f"{kind}: expected an id")
        at_m = (self.number(line, name, text, FARTHEST_M) for name, text in (("x", x), ("y", y)))
        self.add(line, key if kind == "vehicle" else f"{kind}:{key}", self._step_s, *at_m)


class _Steps:
    """The `XmlEvents` of time steps."""

    def __init__(self, log: _Log) -> None:
        self._log = log

    def begins(self, line: int, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        if path[0] != "fcd-export":
            raise self._log.refuse(line, f"expected the element fcd-export (got {path[0]:.60})")
        if path[1:] == ("timestep",):
            self._log.step(line, attributes.get("time"))
        elif path[1:2] == ("timestep",) and len(path) == 3 and path[2] in _KINDS:
            self._log.place(line, path[2], *map(attributes.get, ("id", "x", "y")))

    def holds(self, line: int, path: tuple[str, ...], text: str) -> None: ...

    def ends(self, line: int, path: tuple[str, ...]) -> None: ...


def _read_csv(path: Path, file: BufferedIOBase, log: _Log) -> None:
    rows = csv.reader(lines(path, file), delimiter=";", strict=True)
    try:
        names = next(rows, [])
        time, places = _places(path, names)
        for row in rows:
            line = rows.line_num
            if len(row) != len(names):
                raise log.refuse(line, f"expected {len(names)} fields (got {len(row)})")
            log.step(line, row[time])
            for kind, (key, x, y) in places.items():
                # A time step may have nobody, and a row may be one of the other kind.
                if row[key] or row[x] or row[y]:
                    log.place(line, kind, row[key], row[x], row[y])
    except csv.Error as error:
        raise log.refuse(rows.line_num, f"not a row of a table: {error}") from None


def _places(path: Path, names: list[str]) -> tuple[int, dict[str, list[int]]]:
    """Places of the columns of the time, and of id, x and y of each kind; raises `EdgesimError` for one that lacks."""
    kinds = [kind for kind in _KINDS if f"{kind}_id" in names] or _KINDS[:1]
    wanted = {kind: [f"{kind}_{name}" for name in ("id", "x", "y")] for kind in kinds}
    for name in (TIME, *(name for columns in wanted.values() for name in columns)):
        if name not in names:
            raise EdgesimError(f"{path}: line 1: column {name} is missing; found {', '.join(names)}")
    return names.index(TIME), {kind: list(map(names.index, columns)) for kind, columns in wanted.items()}
