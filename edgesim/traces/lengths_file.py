"""Files of recording lengths: CSV or Parquet with the columns device and length_s, one row per device.

A column ``device_id`` may stand in place of ``device``, as in interval files, and ``period_s`` in place of
``length_s``; other columns are ignored.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from edgesim.base.device_keys import Texts, models_of_all, numbered, texts
from edgesim.base.errors import EdgesimError
from edgesim.base.table_facts import LONGEST_S
from edgesim.base.table_file import column_names, read_columns
from edgesim.traces.device_rows import above_zero, ids_of
from edgesim.traces.interval_file import DEVICE_ID, LENGTH, id_column_of
from edgesim.traces.intervals import Intervals, joined

PERIOD = "period_s"


def with_lengths(recorded: Intervals, path: Path) -> Intervals:
    """Periods with the recording lengths of a file, and the file's further devices, which are never available.

    A period without an end (``inf``) lasts to the end of the recording. If both files have keys, devices are matched by
    them, else by their numbers; ids count from 0, or from 1 if no row has 0. Raises `EdgesimError` for a bad file, a
    device without a length, a start or end after a device's length, and a recording that has notes of unobserved time.
    """
    names = column_names(path) if path.suffix in (".csv", ".parquet") else []
    id_column, length_column = id_column_of(path), PERIOD if PERIOD in names and LENGTH not in names else LENGTH
    frame = read_columns(path, (id_column, length_column))
    ids, own_s = ids_of(frame, path, id_column), above_zero(frame, path, length_column, LONGEST_S)
    if recorded.unobserved_s is not None:
        raise EdgesimError(
            f"{recorded.name}: expected a recording without notes of unobserved time; give lengths and observed "
            "together for the original"
        )
    known, are_keys = recorded.device_count, id_column == DEVICE_ID
    if recorded.keys is not None and are_keys:
        keys: Texts | None
        number, keys = numbered(recorded.keys, texts(map(str, ids.tolist())))
    else:
        number = ids - int(are_keys and ids.min() > 0)
        # Keys must name all devices or none.
        keys = recorded.keys if number.max() < known else None
    count = max(known, int(number.max()) + 1)
    length_s = np.full(count, np.nan)
    length_s[number] = own_s
    if np.isnan(length_s).any():
        device = int(np.argmax(np.isnan(length_s)))
        raise EdgesimError(f"{path}: has no length of {_name(device, recorded)}")
    change_s = np.where(np.isinf(recorded.end_s), recorded.start_s, recorded.end_s)
    beyond = change_s > length_s[recorded.device]
    if beyond.any():
        row = int(np.argmax(beyond))
        device = int(recorded.device[row])
        raise EdgesimError(
            f"{path}: {_name(device, recorded)}: expected a length of at least {change_s[row]:.10g} s, when it "
            f"starts or ends a period in {recorded.name} (got {length_s[device]:.10g})"
        )
    ended = joined(recorded.device, recorded.start_s, recorded.end_s, length_s, count, recorded.name)
    return replace(ended, keys=keys, models=models_of_all(recorded.models, count))


def _name(device: int, recorded: Intervals) -> str:
    called = "" if recorded.keys is None or device >= recorded.device_count else f", key {recorded.keys[device]!r}"
    return f"device {device}{called}"
