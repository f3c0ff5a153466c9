"""Tracks of GPX files, such as those of phones and navigation systems: a device for each track."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.mobility.position_file import FARTHEST_M, PositionRows
from edgesim.traces.readers.position_log import PositionLog
from edgesim.traces.readers.xml_events import read_xml

_EARTH_M = 6_371_000.0
_LONGEST_TIME = 100
_POINT = ("gpx", "trk", "trkseg", "trkpt")


def read_gpx(path: Path, more: Sequence[Path] = ()) -> PositionRows:
    """Read the points of all tracks of a file and of ``more``, on a plane around their mean.

    Seconds count from the earliest point of all files; the devices of a file come behind those of the one before.

    x = R cos(mean latitude) (longitude - mean longitude), y = R (latitude - mean latitude), R = 6,371 km. Of points of
    a track at one time the first counts. Raises `EdgesimError` that names the file, the line and what was expected.
    """
    parts, begin = list[PositionRows](), None
    for file in (path, *more):
        tracks = _Tracks(file, begin)
        read_xml(file, tracks)
        parts.append(tracks.log.rows("points of tracks (trkpt)", has_keys=False))
        begin = tracks.begin
    before = np.cumsum([0, *(part.device_count for part in parts)])
    device = np.concatenate([part.device + count for part, count in zip(parts, before, strict=False)])
    t_s, x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("t_s", "x_m", "y_m"))
    rows = PositionRows(device, t_s, x, y)
    # Longitudes from the first one on, the short way round, since a track may cross the date line.
    longitude = (rows.x_m - rows.x_m[0] + 180.0) % 360.0 - 180.0
    latitude_rad, longitude_rad = np.radians(rows.y_m), np.radians(longitude)
    x_m = _EARTH_M * np.cos(latitude_rad.mean()) * (longitude_rad - longitude_rad.mean())
    y_m = _EARTH_M * (latitude_rad - latitude_rad.mean())
    if max(np.abs(x_m).max(), np.abs(y_m).max()) > FARTHEST_M:
        raise EdgesimError(f"{path}: expected tracks within {FARTHEST_M / 1e3:,.0f} km of their mean")
    return replace(rows, t_s=rows.t_s - rows.t_s.min(), x_m=x_m, y_m=y_m)


class _Tracks:
    """The `XmlEvents` of tracks."""

    def __init__(self, path: Path, begin: datetime | None) -> None:
        self.log = PositionLog(path)
        self._track, self._line, self._last_s = 0, 0, -np.inf
        self._point: list[float] = []
        self._time: str | None = None
        self.begin = begin
        """The instant from which seconds count; the file's first point when None."""

    def begins(self, line: int, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        path = _plain(path)
        if path[0] != "gpx":
            raise self.log.refuse(line, f"expected the element gpx (got {path[0]:.60})")
        if path == _POINT[:2]:
            self._track += 1
            self._last_s = -np.inf
        elif path == _POINT:
            sides = (("lon", 180.0), ("lat", 90.0))
            self._point = [self.log.number(line, name, attributes.get(name), most) for name, most in sides]
            self._line, self._time = line, None
        elif path == (*_POINT, "time"):
            self._time = ""

    def holds(self, line: int, path: tuple[str, ...], text: str) -> None:
        if self._time is not None and _plain(path) == (*_POINT, "time"):
            self._time += text
            if len(self._time) > _LONGEST_TIME:
                raise self.log.refuse(line, f"time: expected {_LONGEST_TIME} characters at most")

    def ends(self, line: int, path: tuple[str, ...]) -> None:
        if _plain(path) != _POINT:
            return
        t_s = self._seconds()
        if t_s != self._last_s:
            self.log.add(self._line, f"track {self._track}", t_s, *self._point)
        self._last_s = t_s

    def _seconds(self) -> float:
        """Seconds of the point from `begin` on."""
        if self._time is None:
            raise self.log.refuse(self._line, "trkpt: expected a time (drawn tracks have none)")
        try:
            at = datetime.fromisoformat(self._time.strip())
        except ValueError:
            raise self.log.refuse(
                self._line, f"time: expected a date and time such as 2026-05-01T12:00:00Z (got {self._time.strip()})"
            ) from None
        at = at.replace(tzinfo=at.tzinfo or UTC)
        self.begin = self.begin or at
        return (at - self.begin).total_seconds()


def _plain(path: tuple[str, ...]) -> tuple[str, ...]:
    """Names of elements without the prefix that the outermost one has."""
    prefix = path[0][: path[0].rfind(":") + 1]
    return tuple(name.removeprefix(prefix) for name in path)
