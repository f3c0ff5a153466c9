"""Which policy gets more updates through a narrow band? A study of two policies over several seeds."""

from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.scenario import Folder, Fresh, Jobs, Out, Seeds, Set, conclude, names, plain_errors, quick_option, start

QUICK = quick_option(rounds=3, seeds=1, out="runs/mine-quick")


@plain_errors
def main(
    policies: Annotated[str, typer.Option(help="Policies to compare.")] = "random,best-channel",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 30,
    seeds: Seeds = 5,
    folder: Folder = Path("data"),
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/mine"),
) -> None:
    """Compare policies on a band of 2 MHz."""
    base = {
        "rounds": rounds,
        "radio": {"bandwidth_hz": 2e6},
        "data": {"dataset": "none", "folder": str(folder)},
        "learning": {"training": "none"},
        "round": {"payload_bits": 1e6},
    }
    axes = {"selection.policy": names(policies)}
    edgesim.study(base, axes, seeds, out, set=set_, jobs=jobs, fresh=fresh)
    conclude(out)


if __name__ == "__main__":
    start(main)
