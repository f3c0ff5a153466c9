"""One station or several, and is it worth averaging at the edge first?

Compares, on the same devices, layouts of stations, each with the whole band (``reused``: bands do not disturb each
other here, so more stations are more spectrum) or with an equal part of it (``split``), and updates merged in the cloud
after every round (flat) or in edge servers with an average in the cloud every few rounds (hierarchical).
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
    conclude,
    counts,
    known,
    names,
    plain_errors,
    quick_option,
    start,
)

PAPER_CNN_BITS = 17_881_664.0
BAND_HZ = 20e6
QUICK = quick_option(
    layouts="one-cell,three-cells", cloud_every="2", devices=30, seeds=1, rounds=4, target=0.6, out="runs/cells-quick"
)


@plain_errors
def main(
    layouts: Annotated[str, typer.Option(help="Files under topologies/.")] = "one-cell,three-cells,seven-cells",
    policies: Annotated[str, typer.Option(help="Policies to compare.")] = "random",
    cloud_every: Annotated[str, typer.Option(help="Rounds between averages in the cloud.")] = "5",
    devices: Annotated[int, typer.Option(min=1, help="Number of devices.")] = 60,
    radius: Annotated[float, typer.Option(min=20, help="Radius of the area in metres.")] = 250.0,
    tmax: Annotated[float, typer.Option(min=0.01, help="Deadline in seconds.")] = 1.0,
    seeds: Seeds = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 60,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.75,
    folder: Folder = Path("data"),
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/cells"),
) -> None:
    """Compare one with several stations, and flat with hierarchical averaging."""
    base = {
        "rounds": rounds,
        "devices": {"count": devices, "radius_m": radius},
        "round": {"tmax_s": tmax, "payload_bits": PAPER_CNN_BITS},
        "data": {"folder": str(folder), "samples_per_device": 20},
    }
    hierarchical = {"topology.aggregation": ["hierarchical"], "topology.cloud_every": counts(cloud_every)}
    runs = []
    for layout in names(layouts):
        axes = {"topology.file": [layout], "selection.policy": names(policies)}
        for spectrum, bands in (("reused", 1), ("split", known.station_count(layout))):
            world = base | {"radio": {"bandwidth_hz": BAND_HZ / bands}}
            for merging in ({"topology.aggregation": ["flat"]}, hierarchical):
                runs += edgesim.grid(world, axes | merging, range(seeds), set_, labels={"spectrum": spectrum})
    edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh)
    first = names(layouts)[0]
    conclude(out, against=[("topology", first), ("aggregation", "flat")])


if __name__ == "__main__":
    start(main)
