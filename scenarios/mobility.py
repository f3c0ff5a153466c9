"""What are plans worth when devices walk or drive: how many uploads miss the deadline, and does FedTeddi's lead last?

A plan by least bandwidths ends every upload at the deadline, on the gain at the decision; a device that has moved away
by then is late. Compares policies, speeds and deadlines, the payload in proportion to the deadline, and what plans
know: nothing of the path (present), the velocity (straight), the path (known), or of the path its worst gain (worst).
With fading, where plans on the average gain fail at rest too, `outage` plans on the gain that fading falls below in a
tenth of the uploads: a reserve of 9.8 dB. Is it enough for devices that move?

Predictions, written before the first run: (a) FedTeddi's final accuracy stays above Random's at every speed, also where
half of its plans fail; (b) the velocity takes away at least half of the misses of plans on the present gain; (c) the
reserve for fading is enough for a second, where driving adds less than 0.05 to the share that misses at rest, and not
for ten.

Seeds run one after another, so that a study that is cut short has whole seeds. How many is fixed beforehand, and none
is added after a look at the tables. They begin at 10, since a smaller study of the seeds 0 to 2 suggested (a) and (b).
"""

from typing import Annotated, Any

from typer import Option

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
PLANS: dict[str, dict[str, Any]] = {
    "present": {},
    "straight": {"path_knowledge": "straight"},
    "known": {"path_knowledge": "known"},
    "worst": {"path_knowledge": "worst"},
    "outage": {"outage": 0.1},
    "known, outage": {"outage": 0.1, "path_knowledge": "known"},
}
"""Keys of ``[round]`` by what plans go by; those with an outage are for fading alone."""
QUICK = {
    "policies": "random,fedteddi", "speeds": "0,15", "tmax": "1.0", "seeds": 2, "rounds": 4, "target": 0.6,
}  # fmt: skip


def plans(fading: str, speed_mps: float) -> dict[str, dict[str, Any]]:
    """The plans to compare; at rest all that is known of the path changes nothing."""
    fades = {
        name: keys for name, keys in PLANS.items() if name == "present" or ("outage" in keys) == (fading != "none")
    }
    return {name: keys for name, keys in fades.items() if speed_mps > 0 or "path_knowledge" not in keys}


@scenario("runs/mobility", quick=QUICK)
def main(
    runs: Runs,
    policies: Policies = "random,fedteddi,fedcs,best-channel",
    speeds: Speeds = "0,1.5,15",
    turn: Turn = 60.0,
    tmax: Deadlines = "1.0,10.0",
    fading: Annotated[str, Option(help="none and rayleigh.")] = "none,rayleigh",
    sharing: Sharing = "reserved",
    devices: Devices = 30,
    rounds: Rounds = 30,
    target: Target = 0.75,
) -> None:
    """Compare plans for devices that move, at several speeds."""
    refuse_unknown("--fading", names(fading), ("none", "rayleigh"))
    cells = [(fades, tmax_s, mps) for fades in names(fading) for tmax_s in numbers(tmax) for mps in numbers(speeds)]
    for seed in range(FIRST_SEED, FIRST_SEED + runs.seeds):
        for fades, tmax_s, speed_mps in cells:
            for plan, keys in plans(fades, speed_mps).items():
                base = {
                    "rounds": rounds,
                    "devices": {"count": devices},
                    "mobility": {"model": "direction", "speed_mps": [speed_mps, speed_mps], "turn_s": turn},
                    "radio": {"sharing": sharing, "fading": fades},
                    "round": {"tmax_s": tmax_s, "payload_bits": PAPER_CNN_BITS * tmax_s, **keys},
                    "data": {"partition": "fedteddi"},
                    "learning": {"pretrain": True},
                }
                labels = {
                    "world": f"deadline {tmax_s:g} s" + (", fading" if fades != "none" else ""), "speed_mps": speed_mps,
                    "plan": plan,
                }  # fmt: skip
                runs.add(base, {"selection.policy": names(policies)}, labels=labels, seeds=[seed])
    reference = "fedteddi" if "fedteddi" in names(policies) else names(policies)[0]
    study = runs.compare(target=target, reference=reference, against=[("plan", "present")])
    finished = [*study.runs.values()]
    album = figures.Album(study.folder / "plots", runs.formats)
    album.add(
        "missed_deadlines", lambda: figures.draw_missed_deadlines(finished, "speed_mps", "plan", "world"), finished
    )


if __name__ == "__main__":
    start(main)
