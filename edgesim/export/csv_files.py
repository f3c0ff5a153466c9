"""The tables of a run as CSV."""

import json
from pathlib import Path

from edgesim.base.paths import refuse_link, system_errors
from edgesim.folder.records import read_table, write_whole
from edgesim.folder.run_schema import SCHEMAS


def write_csv(run: Path, folder: Path) -> list[Path]:
    """Write every table as TABLE.csv, numbers with all their digits and lists as JSON; answers the paths.

    Raises `EdgesimError` for a table that is damaged, and a folder that cannot be written.
    """
    # All are read before the first is written: a damaged table leaves nothing behind.
    tables = {name: read_table(run, name) for name in SCHEMAS}
    counts = tables["devices"]["class_counts"]
    tables["devices"]["class_counts"] = [None if row is None else json.dumps(list(map(int, row))) for row in counts]
    refuse_link(folder)
    paths = []
    with system_errors(f"csv {folder}: cannot be written", "; choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            paths.append(folder / f"{name}.csv")
            write_whole(paths[-1], table.to_csv(index=False, lineterminator="\n"))
    return paths
