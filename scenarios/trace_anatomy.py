"""What is a availability trace like? Sessions, durations and gaps (FedDance's fig. 3), and the hours of the day.

Draws any recordings side by side; without any, a generated week beside the statistics that it is calibrated to.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from edgesim.errors import EdgesimError
from edgesim.files.content import find
from edgesim.plots import style
from edgesim.plots.trace import draw_anatomy
from edgesim.scenario import plain_errors, short_names, start
from edgesim.streams import Streams
from edgesim.terminal.table_text import print_whole
from edgesim.terminal.trace_tables import anatomy_table
from edgesim.traces.convert import settle
from edgesim.traces.models.renewal import Renewal
from edgesim.traces.readers import Availability, read_recording
from edgesim.traces.session_statistics import Anatomy, anatomy


def recorded(name: str) -> Anatomy:
    """Statistics of a availability recording in any format."""
    found = read_recording(find("traces", name, ".parquet"))
    if not isinstance(found, Availability):
        raise EdgesimError(f"{name}: is no availability recording; draw it with edgesim trace show")
    return anatomy(settle(found))


@plain_errors
def main(
    files: Annotated[list[str] | None, typer.Argument(help="Recordings, or names of files under traces/.")] = None,
    devices: Annotated[int, typer.Option(min=1, help="Devices of the generated week.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generated week.")] = 0,
    published: Annotated[bool, typer.Option(help="Mark what FedDance reports of 136,000 phones.")] = True,
    out: Annotated[Path, typer.Option(help="Folder of the figure.")] = Path("runs/trace-anatomy"),
) -> None:
    """Print and draw the anatomy of traces."""
    if files:
        traces = {label: recorded(name) for label, name in zip(short_names(files), files, strict=True)}
    else:
        traces = {f"generated ({devices:,} devices)": anatomy(Renewal().intervals(devices, Streams(seed)))}
    console = Console()
    print_whole(console, anatomy_table(traces))
    for path in style.save(draw_anatomy(traces, published), out / "trace_anatomy"):
        console.print(str(path), highlight=False, soft_wrap=True)


if __name__ == "__main__":
    start(main)
