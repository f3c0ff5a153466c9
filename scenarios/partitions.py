"""How unlike are the devices' data sets under each partition?

Deals one dataset to the devices by every law, prints sizes, classes and label mixes beside each other and draws who
holds what. Timing only: nothing trains.
"""

from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.scenario import (
    Folder,
    Fresh,
    Jobs,
    Out,
    Seeds,
    Set,
    figures,
    names,
    numbers,
    plain_errors,
    quick_option,
    start,
    stop_if_failed,
    tables,
)

WITH_ALPHA = ("dirichlet", "dirichlet-labels", "quantity")
QUICK = quick_option(alpha="0.1", seeds=1, out="runs/partitions-quick")


@plain_errors
def main(
    partitions: Annotated[
        str, typer.Option(help="Laws to compare.")
    ] = "iid,dirichlet,dirichlet-labels,classes,shards,quantity,fedteddi",
    alpha: Annotated[str, typer.Option(help="Concentrations for the Dirichlet laws and quantity skew.")] = "0.1,1",
    dataset: Annotated[str, typer.Option(help="As data.dataset in a config.")] = "digits",
    folder: Folder = Path("data"),
    devices: Annotated[int, typer.Option(min=1, help="Number of devices.")] = 30,
    samples: Annotated[int | None, typer.Option(min=2, help="Samples per device; each law's own when absent.")] = None,
    seeds: Seeds = 5,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/partitions"),
) -> None:
    """Compare partitions by the skew they make."""
    base = {
        "rounds": 1,
        "devices": {"count": devices},
        "data": {"dataset": dataset, "folder": str(folder)} | ({"samples_per_device": samples} if samples else {}),
        "learning": {"training": "none"},
        "round": {"payload_bits": 1e6},
    }
    runs = []
    for partition in names(partitions):
        options = {"data.partition_options.alpha": numbers(alpha)} if partition in WITH_ALPHA else {}
        runs += edgesim.grid(base, {"data.partition": [partition], **options}, range(seeds), set_)
    study = edgesim.study(runs, out=out, jobs=jobs, fresh=fresh)
    tables.skews(out)
    for run in study.runs.values():
        if run.seed == 0:
            figures.save(figures.draw_partition(run), out / "plots" / run.folder.name)
    print(f"who holds what: {out / 'plots'}")
    stop_if_failed(out)


if __name__ == "__main__":
    start(main)
