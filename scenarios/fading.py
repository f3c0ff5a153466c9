"""What does fading cost, and what makes up for it: re-sharing the band, or planning with a margin?

The scheduler plans on the average gain; under Rayleigh fading the upload lives with its own draw. Compares static with
fading channels, reservations with a band that is shared anew at every start and end, plans on the average with plans on
the gain that fading falls below with some probability (`round.outage`), and what is learnt.
"""

from pathlib import Path
from typing import Annotated, Any

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
    names,
    numbers,
    plain_errors,
    quick_option,
    start,
)

PAPER_CNN_BITS = 17_881_664.0
QUICK = quick_option(seeds=1, rounds=4, target=0.6, out="runs/fading-quick")


def ways_to_plan(
    base: dict[str, Any], axes: dict[str, list[Any]], outages: list[float], seeds: int, set_: Set
) -> list[edgesim.PlannedRun]:
    """Runs planned on the average gain, and where uploads fade also on that of each outage."""
    runs = edgesim.grid(base, axes, range(seeds), set_, labels={"plan": "average"})
    fading = axes | {"radio.fading": ["rayleigh"]}
    for outage in outages:
        with_margin = base | {"round": base["round"] | {"outage": outage}}
        runs += edgesim.grid(with_margin, fading, range(seeds), set_, labels={"plan": f"outage-{outage:g}"})
    return runs


@plain_errors
def main(
    policies: Annotated[str, typer.Option(help="Policies to compare.")] = "random,fedteddi",
    channel: Annotated[str, typer.Option(help="Radio environment.")] = "fedteddi-macro",
    outage: Annotated[str, typer.Option(help="Probabilities of a fade below the gain planned on.")] = "0.05",
    tmax: Annotated[str, typer.Option(help="Deadlines in seconds.")] = "1.0",
    seeds: Seeds = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 60,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.75,
    folder: Folder = Path("data"),
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/fading"),
) -> None:
    """Compare static with fading channels, reserved with re-shared bands, and plans without and with a margin."""
    base = {
        "rounds": rounds,
        "radio": {"channel": channel},
        "round": {"payload_bits": PAPER_CNN_BITS},
        "data": {"folder": str(folder)},
    }
    axes = {
        "selection.policy": names(policies),
        "round.tmax_s": numbers(tmax),
        "radio.fading": ["none", "rayleigh"],
        "radio.sharing": ["reserved", "reshared"],
    }
    runs = ways_to_plan(base, axes, numbers(outage), seeds, set_)
    edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh)
    conclude(out, against=[("fading", "none"), ("sharing", "reserved"), ("plan", "average")])


if __name__ == "__main__":
    start(main)
