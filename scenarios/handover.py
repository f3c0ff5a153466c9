"""Does motion help hierarchical learning once the radio has a price, and which edge server should merge an update?

Chen et al. ("Mobility Accelerates Learning: Convergence Analysis on Hierarchical Federated Learning in Vehicular
Networks", arXiv 2401.09656) find that devices that change cells mix the models of edge servers, so that these learn
faster from data that differ between cells; there uploads cost nothing and always arrive. Here each of seven cells has
an edge server of its own and few devices with few classes each, and the cloud averages rarely. ``free`` uploads are so
short that all arrive; ``priced`` ones have the paper's bits in proportion to the deadline, fit into the band by least
bandwidths, lose time in handovers and wait for bandwidth in full cells. ``merge`` is which edge server merges the
update of a device that was handed over; with ``never`` it keeps the station of its task's start, however far it goes.

Predictions, written before the first run: (a) with free uploads the final accuracy at 30 m/s is above that at rest, by
at least 0.05; (b) with priced uploads the gain is less than half of that, since plans of moving devices fail; (c) where
an update is merged changes the final accuracy by less than 0.02, as most changes of cells fall between two tasks; (d)
at 30 m/s more priced uploads are late with handovers than without (``never``), as a full cell makes them wait.

Seeds run one after another, so that a study that is cut short has whole seeds. How many is fixed beforehand, and none
is added after a look at the tables. They begin at 10, since the quick comparison was tried with the seeds 0 and 1.
"""

from dataclasses import replace
from typing import Annotated, Any

from typer import Option

import edgesim
from edgesim.scenario import (
    Deadlines,
    Devices,
    Policies,
    Rounds,
    Runs,
    Sharing,
    Speeds,
    Target,
    Turn,
    figures,
    names,
    numbers,
    refuse_unknown,
    scenario,
    start,
)

PAPER_CNN_BITS = 17_881_664.0
FIRST_SEED = 10
FREE_BITS = 1e3
MERGES: dict[str, dict[str, Any]] = {
    "where_arrived": {"handover": {"merge": "where_arrived"}},
    "where_started": {"handover": {"merge": "where_started"}},
    "never": {},
}
"""Tables of configs by what becomes of devices that leave their cells at work."""
QUICK = {
    "speeds": "0,30", "radio": "priced", "merges": "where_arrived,never", "seeds": 2, "rounds": 6, "target": 0.3,
}  # fmt: skip


def counts(run: edgesim.Run) -> dict[str, float]:
    """Handovers of devices at work, and uploads planned, in all rounds of a run."""
    metrics = run.metrics
    handovers = metrics.loc[metrics["name"] == "handovers", "value"].sum()
    return {"handovers": float(handovers), "uploads": float(run.rounds["selected"].sum())}


@scenario("runs/handover", quick=QUICK)
def main(
    runs: Runs,
    policies: Policies = "random",
    speeds: Speeds = "0,10,30",
    turn: Turn = 60.0,
    tmax: Deadlines = "4.0",
    radio: Annotated[str, Option(help="free and priced uploads.")] = "free,priced",
    merges: Annotated[str, Option(help=f"Of {', '.join(MERGES)}.")] = ",".join(MERGES),
    cloud_every: Annotated[int, Option(min=1, help="Rounds between averages in the cloud.")] = 10,
    sharing: Sharing = "reserved",
    devices: Devices = 42,
    rounds: Rounds = 40,
    target: Target = 0.6,
) -> None:
    """Compare speeds of devices and where their updates are merged, with free and with priced uploads."""
    refuse_unknown("--radio", names(radio), ("free", "priced"))
    refuse_unknown("--merges", names(merges), tuple(MERGES))
    if 0.0 not in numbers(speeds):
        raise edgesim.EdgesimError(f"--speeds: expected 0 among them, to which the others are compared (got {speeds})")
    worlds = [(price, tmax_s) for price in names(radio) for tmax_s in numbers(tmax)]
    for seed in range(FIRST_SEED, FIRST_SEED + runs.seeds):
        for price, tmax_s in worlds:
            bits = FREE_BITS if price == "free" else PAPER_CNN_BITS * tmax_s
            world = price if len(numbers(tmax)) == 1 else f"{price}, {tmax_s:g} s"
            for speed_mps in numbers(speeds):
                # At rest nobody is handed over, so that these runs stand beside all others.
                for merge in names(merges) if speed_mps else names(merges)[:1]:
                    base = {
                        "rounds": rounds,
                        "devices": {"count": devices},
                        "mobility": {"model": "direction", "speed_mps": [speed_mps, speed_mps], "turn_s": turn},
                        "topology": {
                            "file": "seven-cells", "aggregation": "hierarchical", "cloud_every": cloud_every,
                        },
                        "radio": {"bandwidth_hz": 5e6, "sharing": sharing},
                        "round": {"tmax_s": tmax_s, "payload_bits": bits, "path_knowledge": "straight"},
                        "learning": {"pretrain": False},
                        "data": {"partition": "shards", "partition_options": {"shards_per_device": 2}},
                        **MERGES[merge],
                    }  # fmt: skip
                    labels = {"radio": world, "speed_mps": speed_mps} | ({"merge": merge} if speed_mps else {})
                    runs.add(base, {"selection.policy": names(policies)}, labels=labels, seeds=[seed])
    study = runs.compare(target=target, against=[("speed_mps", 0.0), ("merge", names(merges)[0])])
    # Runs at rest, which no merge changes, are the first point of every line.
    finished = [
        replace(run, knobs={"merge": merge, **run.knobs}) for run in study.runs.values() for merge in names(merges)
        if run.knobs.get("merge", merge) == merge
    ]  # fmt: skip
    album = figures.Album(study.folder / "plots", runs.formats)
    album.add(
        "missed_deadlines", lambda: figures.draw_missed_deadlines(finished, "speed_mps", "merge", "radio"), finished
    )


if __name__ == "__main__":
    start(main)
