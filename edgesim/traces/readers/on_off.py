"""On/off lists: CSV rows ``device, state, t1, t2, ...``, the state at 0 and the instants at which it changes."""

from pathlib import Path

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import MOST_DEVICES
from edgesim.base.table_facts import LONGEST_S
from edgesim.base.table_file import csv_rows
from edgesim.traces.intervals import check_length, joined
from edgesim.traces.lengths_file import with_lengths
from edgesim.traces.readers.results import RecordedAvailability


def read_on_off(path: Path, length_s: float | None = None, lengths: Path | None = None) -> RecordedAvailability:
    """Read one row per device; a first row that begins with ``device`` is a header.

    The last state holds until ``length_s``, until the device's length in a file of ``lengths``, or else until the last
    change in the file. Raises `EdgesimError` that names the file, the line, the field and what was expected.
    """
    check_length(length_s)
    changes_s: dict[int, list[float]] = {}
    lines: dict[int, int] = {}
    try:
        for line, row in csv_rows(path):
            fields = [field.strip() for field in row]
            if not any(fields) or (not changes_s and fields[0] == "device"):
                continue
            device, instants_s = _checked(f"{path}: line {line}", fields)
            if device in changes_s:
                raise EdgesimError(
                    f"{path}: line {line}: device: expected each device once (got {device}, which is in "
                    f"line {lines[device]})"
                )
            changes_s[device], lines[device] = instants_s, line
    except OSError as error:
        raise EdgesimError(f"{path}: not a readable CSV file: {error}") from None
    if not changes_s:
        raise EdgesimError(f"{path}: holds no rows; expected device, state, t1, t2, ...")
    rows = [
        (device, start_s, end_s)
        for device, instants_s in changes_s.items()
        for start_s, end_s in zip(instants_s[::2], [*instants_s[1::2], np.inf], strict=False)
    ]
    ids, start_s, end_s = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    columns = (ids.astype(np.int64), start_s, end_s)
    count = max(changes_s) + 1
    if lengths is not None:
        return RecordedAvailability(with_lengths(joined(*columns, np.inf, count, str(path)), lengths))
    last_s = max((instants_s[-1] for instants_s in changes_s.values() if instants_s), default=0.0)
    length_s = last_s if length_s is None else length_s
    if length_s <= 0 or length_s < last_s:
        raise EdgesimError(f"{path}: the last change is at {last_s:g} s; give a length_s of at least that, above 0")
    return RecordedAvailability(joined(*columns, length_s, count, str(path)))


def _checked(place: str, fields: list[str]) -> tuple[int, list[float]]:
    """The device, and the instants at which its available periods start and end: start, end, start, ..."""
    # Compared as a float, since int() refuses numbers of more than 4,300 digits.
    if not fields[0].isdecimal() or float(fields[0]) >= MOST_DEVICES:
        raise EdgesimError(
            f"{place}: device: expected a whole number from 0 to {MOST_DEVICES - 1} (got {fields[0]:.60})"
        )
    state = fields[1] if len(fields) > 1 else ""
    if state not in ("on", "off"):
        raise EdgesimError(f"{place}: state: expected on or off, the state at 0 (got {state})")
    while fields[-1] == "":
        fields = fields[:-1]
    instants_s = [0.0] if state == "on" else []
    before_s = 0.0
    for number, field in enumerate(fields[2:], 1):
        try:
            instant_s = float(field)
        except ValueError:
            instant_s = np.nan
        if not 0 <= instant_s <= LONGEST_S:
            raise EdgesimError(f"{place}: t{number}: expected seconds, 0 to {LONGEST_S:g} (got {field:.60})")
        if instant_s <= before_s and number > 1:
            raise EdgesimError(f"{place}: t{number}: expected a later instant than the one before (got {field})")
        instants_s.append(instant_s)
        before_s = instant_s
    return int(fields[0]), instants_s
