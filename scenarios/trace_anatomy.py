"""What is an availability trace like? Sessions, durations and gaps (FedDance's fig. 3), and the hours of the day.

Draws any recordings side by side; without any, a generated week beside the statistics that it is calibrated to.
"""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console

from edgesim.errors import EdgesimError
from edgesim.files.content import find
from edgesim.plots import style
from edgesim.plots.trace import draw_anatomy
from edgesim.scenario import plain_errors, quick_option, short_names, start
from edgesim.streams import Streams
from edgesim.terminal.table_text import print_whole
from edgesim.terminal.trace_tables import anatomy_table
from edgesim.traces.convert import settle
from edgesim.traces.models.renewal import Renewal
from edgesim.traces.readers import RecordedAvailability, read_recording
from edgesim.traces.session_statistics import Anatomy, anatomy

QUICK = quick_option(devices=200, out="runs/trace-anatomy-quick")


def recorded(name: str) -> Anatomy:
    """Statistics of a availability recording in any format."""
    found = read_recording(find("traces", name, ".parquet"))
    if not isinstance(found, RecordedAvailability):
        raise EdgesimError(f"{name}: is no availability recording; draw it with edgesim trace show")
    return anatomy(settle(found))


@plain_errors
def main(
    files: Annotated[
        list[str] | None, typer.Argument(help="Recordings, or names of files under traces/; sample-week with --quick.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Devices of the generated week.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generated week.")] = 0,
    published: Annotated[bool, typer.Option(help="Mark what FedDance reports of 136,000 phones.")] = True,
    quick: Annotated[bool, QUICK] = False,
    out: Annotated[Path, typer.Option(help="Folder of the table and the figure.")] = Path("runs/trace-anatomy"),
) -> None:
    """Print and draw the anatomy of traces."""
    recordings = files or (["sample-week"] if quick else [])
    traces = {label: recorded(name) for label, name in zip(short_names(recordings), recordings, strict=True)}
    if not files:
        traces[f"generated ({devices:,} devices)"] = anatomy(Renewal().intervals(devices, Streams(seed)))
    console = Console()
    table = anatomy_table(traces)
    print_whole(console, table)
    paths = style.save(draw_anatomy(traces, published), out / "trace_anatomy")
    cells = {column.header: list(column.cells) for column in table.columns}
    pd.DataFrame(cells).to_csv(out / "trace_anatomy.csv", index=False, lineterminator="\n")
    for path in [out / "trace_anatomy.csv", *paths]:
        console.print(str(path), highlight=False, soft_wrap=True)


if __name__ == "__main__":
    start(main)
