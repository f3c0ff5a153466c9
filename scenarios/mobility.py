"""What are plans worth when devices walk or drive: how many uploads miss the deadline, and does FedTeddi's lead last?

A plan by least bandwidths ends every upload at the deadline, on the gain at the decision; a device that has moved away
by then is late. Compares policies, speeds and deadlines, the payload in proportion to the deadline, and what the
scheduler knows of the paths (`round.path_knowledge`): nothing (present), the velocity (straight), the path (known), or
of the path its worst gain (worst).
"""

from typing import Annotated

from typer import Option

from edgesim.scenario import Policies, Rounds, Runs, Target, figures, names, numbers, scenario, start

PAPER_CNN_BITS = 17_881_664.0
QUICK = {
    "policies": "random,fedteddi", "speeds": "0,15", "tmax": "1.0", "knowledge": "present,known", "seeds": 2,
    "rounds": 4, "target": 0.6,
}  # fmt: skip


@scenario("runs/mobility", quick=QUICK)
def main(
    runs: Runs,
    policies: Policies = "random,fedteddi,fedcs,best-channel",
    speeds: Annotated[str, Option(help="Speeds of all devices in m/s.")] = "0,1.5,15,30",
    tmax: Annotated[str, Option(help="Deadlines in seconds.")] = "1.0,10.0",
    knowledge: Annotated[
        str, Option(help="What plans know of paths: present, straight, known or worst.")
    ] = "present,straight,known,worst",
    turn: Annotated[float, Option(min=0.001, help="Mean seconds between two turns.")] = 60.0,
    sharing: Annotated[str, Option(help="reserved or reshared bands.")] = "reserved",
    rounds: Rounds = 60,
    target: Target = 0.75,
) -> None:
    """Compare what is known of the paths of devices that move, at several speeds."""
    for speed_mps in numbers(speeds):
        for deadline_s in numbers(tmax):
            base = {
                "rounds": rounds,
                "mobility": {"model": "direction", "speed_mps": [speed_mps, speed_mps], "turn_s": turn},
                "radio": {"sharing": sharing},
                "round": {"tmax_s": deadline_s, "payload_bits": PAPER_CNN_BITS * deadline_s},
                "data": {"partition": "fedteddi"},
                "learning": {"pretrain": True},
            }
            axes = {"selection.policy": names(policies), "round.path_knowledge": names(knowledge)}
            runs.add(base, axes, labels={"speed_mps": speed_mps, "tmax_s": deadline_s})
    study = runs.compare(target=target, reference="fedteddi", against=[("path_knowledge", names(knowledge)[0])])
    finished = [*study.runs.values()]
    album = figures.Album(study.folder / "plots", runs.formats)
    album.add(
        "missed_deadlines",
        lambda: figures.draw_missed_deadlines(finished, "speed_mps", "path_knowledge", "tmax_s"),
        finished,
    )


if __name__ == "__main__":
    start(main)
