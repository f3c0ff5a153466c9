"""Positions as a reader meets them, row by row, checked and kept in memory that is known to be there."""

from array import array
from pathlib import Path

import numpy as np

from edgesim.base.device_keys import texts
from edgesim.base.errors import EdgesimError
from edgesim.base.memory import check_fits
from edgesim.base.quantities import MOST_DEVICES
from edgesim.base.table_facts import LONGEST_S
from edgesim.mobility.position_file import PositionRows

_ROW_BYTES = 150
"""Memory that a row takes at most, while the rows are ordered."""
_CHECK_EVERY = 1 << 18
_LONGEST_KEY = 200


class PositionLog:
    """Rows of positions, those of each device in order of time; devices are numbered as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number: dict[str, int] = {}
        self._last_s: list[float] = []
        self._device, self._columns = array("i"), (array("d"), array("d"), array("d"))

    def refuse(self, line: int, message: str) -> EdgesimError:
        """The error of a line of the file."""
        return EdgesimError(f"{self._path}: line {line}: {message}")

    def number(self, line: int, field: str, text: str | None, most: float) -> float:
        """A field's number of at most some size; raises `EdgesimError` for anything else, also for None."""
        try:
            value = float(text or "")
        except ValueError:
            value = np.nan
        if not abs(value) <= most:
            got = "nothing" if text is None else f"{text:.60}"
            raise self.refuse(line, f"{field}: expected a number from {-most:g} to {most:g} (got {got})")
        return value

    def seconds(self, line: int, field: str, text: str | None) -> float:
        """A field's seconds, 0 or more; raises `EdgesimError` for anything else."""
        if (value := self.number(line, field, text, LONGEST_S)) < 0:
            raise self.refuse(line, f"{field}: expected seconds, 0 to {LONGEST_S:g} (got {value:g})")
        return value

    def add(self, line: int, key: str, t_s: float, x: float, y: float) -> None:
        """Keep a row; raises `EdgesimError` unless it is later than the device's row before."""
        device = self._number.setdefault(key, len(self._number))
        if device == len(self._last_s):
            if device >= MOST_DEVICES or len(key) > _LONGEST_KEY:
                raise self.refuse(line, f"expected {MOST_DEVICES:,} ids of {_LONGEST_KEY} characters at most")
            self._last_s.append(-np.inf)
        if t_s <= self._last_s[device]:
            before = f"{self._last_s[device]:.10g} s in the row before of {key!r}"
            raise self.refuse(line, f"expected a time after {before} (got {t_s:.10g})")
        self._last_s[device] = t_s
        self._device.append(device)
        for column, value in zip(self._columns, (t_s, x, y), strict=True):
            column.append(value)
        if len(self._device) % _CHECK_EVERY == 0:
            check_fits(_ROW_BYTES * len(self._device), f"{self._path}: line {line}: what is read up to here")

    def rows(self, expected: str, has_keys: bool = True) -> PositionRows:
        """All rows, ordered by device and then time; raises `EdgesimError` for none of what is ``expected``."""
        if not self._device:
            raise EdgesimError(f"{self._path}: holds no rows; expected {expected}")
        device = np.array(self._device, dtype=np.int64)
        order = np.argsort(device, kind="stable")
        t_s, x_m, y_m = (np.array(column)[order] for column in self._columns)
        return PositionRows(device[order], t_s, x_m, y_m, texts(self._number) if has_keys else None)
