"""How unlike are the devices' data sets under each partition?

Deals one dataset to the devices by every law, prints sizes, classes and label mixes beside each other and draws who
holds what. Timing only: nothing trains.
"""

from typing import Annotated

from typer import Option

from edgesim.scenario import Devices, Runs, figures, names, numbers, scenario, start, stop_if_failed, tables

WITH_ALPHA = ("dirichlet", "dirichlet-labels", "quantity")


@scenario("runs/partitions", quick={"alpha": "0.1", "seeds": 1})
def main(
    runs: Runs,
    partitions: Annotated[
        str, Option(help="Laws to compare.")
    ] = "iid,dirichlet,dirichlet-labels,classes,shards,quantity,fedteddi",
    alpha: Annotated[str, Option(help="Concentrations for the Dirichlet laws and quantity skew.")] = "0.1,1",
    dataset: Annotated[str, Option(help="As data.dataset in a config.")] = "digits",
    devices: Devices = 30,
    samples: Annotated[int | None, Option(min=2, help="Samples per device; each law's own when absent.")] = None,
) -> None:
    """Compare partitions by the skew they make."""
    base = {
        "rounds": 1,
        "devices": {"count": devices},
        "data": {"dataset": dataset} | ({"samples_per_device": samples} if samples else {}),
        "learning": {"training": "none", "pretrain": True},
        "round": {"payload_bits": 1e6},
    }
    for partition in names(partitions):
        options = {"data.partition_options.alpha": numbers(alpha)} if partition in WITH_ALPHA else {}
        runs.add(base, {"data.partition": [partition], **options})
    study = runs.study()
    tables.skews(study.folder)
    for run in study.runs.values():
        if run.seed == 0:
            figures.save(figures.draw_partition(run), study.folder / "plots" / run.folder.name, runs.formats)
    print(f"who holds what: {study.folder / 'plots'}")
    stop_if_failed(study.folder)


if __name__ == "__main__":
    start(main)
