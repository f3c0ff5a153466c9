"""What does fading cost, and does re-sharing the band make up for it?

The scheduler plans on the average gain; under Rayleigh fading the upload lives with its own draw. Compares static with
fading channels, reservations with a band that is shared anew at every start and end, and what is learnt.
"""

from pathlib import Path
from typing import Annotated

import typer

from edgesim.scenario import conclude, names, numbers, plain_errors
from edgesim.study import Study, grid, run_study

PAPER_CNN_BITS = 17_881_664.0


@plain_errors
def main(
    policies: Annotated[str, typer.Option(help="Policies to compare.")] = "random,fedteddi",
    channel: Annotated[str, typer.Option(help="Radio environment.")] = "fedteddi-macro",
    tmax: Annotated[str, typer.Option(help="Deadlines in seconds.")] = "1.0",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 60,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.75,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")] = None,
    out: Annotated[Path, typer.Option(help="Study folder.")] = Path("runs/fading"),
) -> None:
    """Compare static with fading channels and reserved with re-shared bands."""
    base = {"rounds": rounds, "radio": {"channel": channel}, "round": {"payload_bits": PAPER_CNN_BITS}}
    axes = {
        "selection.policy": names(policies),
        "round.tmax_s": numbers(tmax),
        "radio.fading": ["none", "rayleigh"],
        "radio.sharing": ["reserved", "reshared"],
    }
    run_study(Study(out.name, grid(base, axes, range(seeds)), target), out, jobs)
    conclude(out, against=[("fading", "none"), ("sharing", "reserved")])


if __name__ == "__main__":
    typer.run(main)
