"""What is an availability trace like? Sessions, durations and gaps (FedDance's fig. 3), and the hours of the day.

Draws any recordings side by side; without any, a generated week beside the statistics that it is calibrated to.
``--set`` gives that week's model other options, such as ``availability.online_share=0.5``.
"""

from pathlib import Path
from typing import Annotated

import typer

from edgesim.scenario import (
    Jobs,
    Set,
    figures,
    plain_errors,
    quick_option,
    recordings,
    short_names,
    start,
    tables,
    work,
)

QUICK = quick_option(devices=200, jobs=1, out="runs/trace-anatomy-quick")


@plain_errors
def main(
    files: Annotated[
        list[str] | None, typer.Argument(help="Recordings, or names of files under traces/; sample-week with --quick.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Devices of the generated week.")] = 5000,
    published: Annotated[bool, typer.Option(help="Mark what FedDance reports of 136,000 phones.")] = True,
    seeds: Annotated[int, typer.Option(min=1, help="Number of generated weeks, each with a seed of its own.")] = 1,
    folder: Annotated[Path, typer.Option(help="Where recordings lie that are given by name.")] = Path("traces"),
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Work out again what is there and current.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the table and the figure.")] = Path("runs/trace-anatomy"),
) -> None:
    """Print and draw the anatomy of traces."""
    given = files or (["sample-week"] if quick else [])
    paths = [recordings.path_of(name, folder) for name in given]
    weeks = [] if files else [(devices, seed, set_) for seed in range(seeds)]
    labels = short_names(given) + [f"generated ({devices:,} devices)"] * bool(weeks)
    labels += [f"generated, seed {seed}" for seed in range(1, len(weeks))]
    kept = work.Kept(out, paths, labels, weeks, published)
    table = out / "trace_anatomy.csv"
    made = [table, table.with_suffix(".png"), table.with_suffix(".svg")]
    if fresh or not kept.is_current:
        found = work.in_processes(recordings.anatomy_of, [(path,) for path in paths], jobs)
        found += work.in_processes(recordings.anatomy_of_generated, weeks, jobs)
        traces = dict(zip(labels, found, strict=True))
        figures.save(figures.draw_anatomy(traces, published), out / "trace_anatomy")
        tables.save(tables.anatomies(traces), table)
        kept.keep(made)
    tables.show_anatomies(table)
    for path in made:
        print(path)


if __name__ == "__main__":
    start(main)
