"""mahimahi recordings as packet counts per bin: a table of trace, direction, bin, packets.

A bin is 0.1 s; a packet is the opportunity to send 1,500 bytes, as in the packet-opportunity files of
Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015.
"""

from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.table_file import numbers_of, read_columns, refuse_rows, whole_numbers
from edgesim.traces.readers.mahimahi import PACKET_BITS
from edgesim.traces.readers.results import Capacity

COLUMNS = ("trace", "direction", "bin", "packets")
_BINS_PER_S = 10
_MOST_PACKETS = 1_000_000


def read_mahimahi_bins(path: Path) -> Capacity:
    """Read a capacity table for each trace and direction, named TRACE-DIRECTION, which ends with its last bin.

    The bins of each trace and direction must be 0, 1, 2, ... in the file's order. Raises `EdgesimError` that names the
    file, the line (CSV) or row (Parquet), the column and what was expected.
    """
    frame = read_columns(path, COLUMNS, text=COLUMNS[:2])
    name = frame["trace"].astype(str) + "-" + frame["direction"].astype(str)
    counts = frame.groupby(name, sort=False).cumcount().to_numpy()
    number = numbers_of(frame["bin"])
    in_order = "0, 1, 2, ... in the rows of a trace and direction, none left out"
    refuse_rows(path, frame, "bin", number != counts, in_order)
    bps = whole_numbers(path, frame, "packets", _MOST_PACKETS) * PACKET_BITS * _BINS_PER_S
    tables = {
        str(key): (number[rows] / _BINS_PER_S, bps[rows])
        for key, rows in name.groupby(name, sort=False).indices.items()
    }
    empty = [key for key, (_, rates) in tables.items() if not rates.any()]
    if empty:
        raise EdgesimError(f"{path}: {empty[0]}: packets: expected a bin with packets; no upload would ever end")
    return Capacity(tables, {key: len(t_s) / _BINS_PER_S for key, (t_s, _) in tables.items()})
