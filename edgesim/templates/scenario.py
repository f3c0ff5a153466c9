"""Which policy gets more updates through a narrow band? A study of two policies over several seeds."""

from pathlib import Path
from typing import Annotated

import typer

from edgesim import Study, grid, run_study
from edgesim.scenario import Fresh, conclude, names, quick_option, start
from edgesim.terminal.plain import plain_errors

QUICK = quick_option(rounds=3, seeds=1, out="runs/mine-quick")


@plain_errors
def main(
    policies: Annotated[str, typer.Option(help="Policies to compare.")] = "random,best-channel",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 30,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    quick: Annotated[bool, QUICK] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")] = None,
    fresh: Fresh = False,
    out: Annotated[Path, typer.Option(help="Study folder.")] = Path("runs/mine"),
) -> None:
    """Compare policies on a band of 2 MHz."""
    base = {
        "rounds": rounds,
        "radio": {"bandwidth_hz": 2e6},
        "data": {"dataset": "none"},
        "learning": {"training": "none"},
        "round": {"payload_bits": 1e6},
    }
    runs = grid(base, {"selection.policy": names(policies)}, range(seeds))
    run_study(Study(out.name, runs), out, jobs, fresh=fresh)
    conclude(out)


if __name__ == "__main__":
    start(main)
