"""Recorded uplinks, one for each device: CSV or Parquet with the columns device, t_s, bps and perhaps end_s."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from edgesim.base.arrays import Floats, Integers, ranks
from edgesim.base.content import find
from edgesim.base.device_keys import DeviceKeys, Texts, need_devices
from edgesim.base.errors import EdgesimError
from edgesim.base.table_file import devices_of, numbers_of, read_columns, refuse_rows, texts_of, write_parquet
from edgesim.config import LinksConfig
from edgesim.radio.capacity import CapacityTables
from edgesim.radio.capacity_file import checked_rows

DEVICE, END, KEY = "device", "end_s", "key"
COLUMNS = (DEVICE, "t_s", "bps")


@dataclass(frozen=True, eq=False)
class LinkRows:
    """Capacity over time of the devices 0, 1, ...: rows ordered by device and then time, as in `CapacityTables`."""

    device: Integers
    """Device of each row, [m]."""
    t_s: Floats
    """Start of each row, [m]."""
    bps: Floats
    """Capacity from there to the device's next row, [m]."""
    end_s: Floats | None
    """End of each device's last row, in s, [devices]; None if the recording does not state it."""
    keys: Texts | None = None
    """Key of each device in the recording, [devices], all different; None if it has no keys."""

    @property
    def device_count(self) -> int:
        """Devices of the recording."""
        return int(self.device[-1]) + 1

    @property
    def held_s(self) -> Floats:
        """Seconds that each row holds, [m]; 0 for a last row whose end is not known."""
        behind_s = np.append(self.t_s[1:], 0.0)
        last = np.append(np.diff(self.device) > 0, True)
        behind_s[last] = self.t_s[last] if self.end_s is None else self.end_s
        return np.asarray(behind_s - self.t_s)

    def of(self, device: int) -> tuple[Floats, Floats]:
        """Times and capacities of one device."""
        rows = slice(*np.searchsorted(self.device, [device, device + 1]).tolist())
        return self.t_s[rows], self.bps[rows]

    def rows_of(self, devices: Integers) -> tuple[Integers, Integers]:
        """Rows of ``devices``, one device after another, and the position in ``devices`` that each belongs to, [k]."""
        bounds = np.searchsorted(self.device, np.arange(self.device_count + 1))
        counts = np.diff(bounds)[devices]
        place = np.repeat(np.arange(len(devices)), counts)
        return bounds[devices][place] + ranks(counts), place


def read_links(path: Path) -> LinkRows:
    """Read and check recorded uplinks; other columns are ignored, rows of different devices may alternate.

    Raises `EdgesimError` that names the file, the line (CSV, the header is line 1) or row (Parquet, from 1), the
    column and what was expected, or the first device without rows.
    """
    frame = read_columns(path, COLUMNS, optional=(END, KEY), text=(KEY,))
    device = devices_of(path, frame, DEVICE)
    order, t_s, bps = checked_rows(path, frame, device, DEVICE)
    device = device[order]
    keys = _keys(path, frame, device, order) if KEY in frame else None
    if END not in frame:
        return LinkRows(device, t_s, bps, None, keys)
    ends_s = numbers_of(frame[END])[order]
    last = np.append(np.diff(device) > 0, True)
    for broken, expected in (
        (~np.isfinite(ends_s), "a finite number"),
        (np.append(False, (np.diff(device) == 0) & (np.diff(ends_s) != 0)), "one end in all rows of a device"),
        (last & (ends_s <= t_s), "an instant after the device's last t_s"),
    ):
        refuse_rows(path, frame, END, broken, expected, order)
    return LinkRows(device, t_s, bps, ends_s[last], keys)


def _keys(path: Path, frame: pd.DataFrame, device: Integers, order: Integers) -> Texts:
    """Key of each device, [devices]; ``order`` sorts the rows of ``frame`` by device, as ``device`` is."""
    code, names = pd.factorize(frame[KEY])
    code = code[order]
    begins = np.append(True, np.diff(device) > 0)
    twice = np.ones(len(code), dtype=bool)
    twice[np.flatnonzero(begins)[np.unique(code[begins], return_index=True)[1]]] = False
    for broken, expected in (
        (code < 0, "the device's key"),
        (np.append(False, (np.diff(device) == 0) & (np.diff(code) != 0)), "one key in all rows of a device"),
        (begins & twice, "a key that no other device has"),
    ):
        refuse_rows(path, frame, KEY, broken, expected, order)
    return np.asarray(texts_of(pd.Series(names))[code[begins]])


def write_links(path: Path, links: LinkRows) -> None:
    """Write a Parquet file from which `read_links` reads the same links."""
    columns: dict[str, object] = {DEVICE: links.device.astype(np.int32), "t_s": links.t_s, "bps": links.bps}
    if links.end_s is not None:
        columns[END] = links.end_s[links.device]
    if links.keys is not None:
        columns[KEY] = pa.DictionaryArray.from_arrays(links.device.astype(np.int32), pa.array(links.keys, pa.string()))
    write_parquet(path, pa.table(columns), {})


def load_links(config: LinksConfig, count: int, keys: DeviceKeys | None = None) -> CapacityTables:
    """The recorded uplinks of the ``count`` devices of a run, and whether they wrap, hold or end.

    If both the run (``keys`` [count]) and the file have keys, devices are matched by them; otherwise device k of the
    run gets the link of device k of the file. Raises `EdgesimError` for a bad file, too few devices, a key that the
    file lacks, or ends that are missing or given twice.
    """
    path = find("traces", config.file, ".parquet", "devices.links.file", "bps")
    links = read_links(path)
    chosen = np.arange(count)
    if keys is not None and links.keys is not None:
        chosen = keys.rows_in(DeviceKeys(links.keys, str(path)))
    else:
        need_devices(str(path), "recording", links.device_count, count, "links")
    rows, device = links.rows_of(chosen)
    until_s = _ends_s(config, links, path)[chosen]
    return CapacityTables(str(path), device, links.t_s[rows], links.bps[rows], until_s, config.after_end == "wrap")


def _ends_s(config: LinksConfig, links: LinkRows, path: Path) -> Floats:
    """End of each device's last row, in s, [devices]; raises `EdgesimError` unless it is stated once."""
    if config.after_end == "hold":
        return np.full(links.device_count, np.inf)
    if links.end_s is not None and config.end_s is None:
        return links.end_s
    if links.end_s is not None:
        wrong = f"{path} has a column {END} already; remove the key"
    elif config.end_s is None:
        wrong = (
            f"expected the instant at which the last rows end, since {path} has no column {END}; give it, or "
            "after_end = 'hold'"
        )
    elif config.end_s <= (last_s := links.t_s.max()):
        wrong = f"expected an instant after the start of the last row of {path}, {last_s:g} s (got {config.end_s:g})"
    else:
        return np.full(links.device_count, config.end_s)
    raise EdgesimError(f"devices.links.end_s: {wrong}", "devices.links")
