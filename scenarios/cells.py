"""One station or several, and is it worth averaging at the edge first?

Compares, on the same devices, layouts of stations, each with the whole band (``reused``: bands do not disturb each
other here, so more stations are more spectrum) or with an equal part of it (``split``), and updates merged in the cloud
after every round (flat) or in edge servers with an average in the cloud every few rounds (hierarchical).
"""

from typing import Annotated

from typer import Option

from edgesim.scenario import Devices, Policies, Rounds, Runs, Target, counts, known, names, scenario, start

PAPER_CNN_BITS = 17_881_664.0
BAND_HZ = 20e6
QUICK = {"layouts": "one-cell,three-cells", "cloud_every": "2", "devices": 30, "seeds": 1, "rounds": 4, "target": 0.6}


@scenario("runs/cells", quick=QUICK)
def main(
    runs: Runs,
    layouts: Annotated[str, Option(help="Files under topologies/.")] = "one-cell,three-cells,seven-cells",
    policies: Policies = "random",
    cloud_every: Annotated[str, Option(help="Rounds between averages in the cloud.")] = "5",
    devices: Devices = 60,
    radius: Annotated[float, Option(min=20, help="Radius of the area in metres.")] = 250.0,
    tmax: Annotated[float, Option(min=0.01, help="Deadline in seconds.")] = 1.0,
    rounds: Rounds = 60,
    target: Target = 0.75,
) -> None:
    """Compare one with several stations, and flat with hierarchical averaging."""
    base = {
        "rounds": rounds,
        "devices": {"count": devices, "radius_m": radius},
        "round": {"tmax_s": tmax, "payload_bits": PAPER_CNN_BITS},
        "data": {"partition": "fedteddi", "samples_per_device": 20},
        "learning": {"pretrain": True},
    }
    hierarchical = {"topology.aggregation": ["hierarchical"], "topology.cloud_every": counts(cloud_every)}
    for layout in names(layouts):
        axes = {"topology.file": [layout], "selection.policy": names(policies)}
        for spectrum, bands in (("reused", 1), ("split", known.station_count(layout))):
            world = base | {"radio": {"bandwidth_hz": BAND_HZ / bands}}
            for merging in ({"topology.aggregation": ["flat"]}, hierarchical):
                runs.add(world, axes | merging, labels={"spectrum": spectrum})
    runs.compare(target=target, against=[("topology", names(layouts)[0]), ("aggregation", "flat")])


if __name__ == "__main__":
    start(main)
