"""What is an availability trace like? Sessions, durations and gaps (FedDance's fig. 3), and the hours of the day.

Draws any recordings side by side; without any, a generated week beside the statistics that it is calibrated to.
``--set`` gives that week's model other options, such as ``availability.online_share=0.5``.
"""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from edgesim.scenario import Runs, TracesFolder, figures, recordings, scenario, short_names, start, tables, work


@scenario("runs/trace-anatomy", seeds=1, quick={"devices": 200, "jobs": 1})
def main(
    runs: Runs,
    files: Annotated[
        list[str] | None, Argument(help="Recordings, or names of files under traces/; sample-week with --quick.")
    ] = None,
    devices: Annotated[int, Option(min=1, help="Devices of the generated week.")] = 5000,
    published: Annotated[bool, Option(help="Mark what FedDance reports of 136,000 phones.")] = True,
    folder: TracesFolder = Path("traces"),
) -> None:
    """Print and draw the anatomy of traces; of generated weeks one for each of --seeds."""
    given = files or (["sample-week"] if runs.quick else [])
    paths = [recordings.path_of(name, folder) for name in given]
    weeks = [] if files else [(devices, seed, runs.set_) for seed in range(runs.seeds)]
    labels = short_names(given) + [f"generated ({devices:,} devices)"] * bool(weeks)
    labels += [f"generated, seed {seed}" for seed in range(1, len(weeks))]
    kept = work.Kept(runs.out, paths, labels, weeks, published, runs.formats)
    table = runs.out / "trace_anatomy.csv"
    made = [table, *(table.with_suffix(f".{kind}") for kind in runs.formats)]
    if runs.fresh or not kept.is_current:
        found = work.in_processes(recordings.anatomy_of, [(path,) for path in paths], runs.jobs)
        found += work.in_processes(recordings.anatomy_of_generated, weeks, runs.jobs)
        traces = dict(zip(labels, found, strict=True))
        figures.save(figures.draw_anatomy(traces, published), runs.out / "trace_anatomy", runs.formats)
        tables.save(tables.anatomies(traces), table)
        kept.keep(made)
    tables.show_anatomies(table)
    for path in made:
        print(path)


if __name__ == "__main__":
    start(main)
