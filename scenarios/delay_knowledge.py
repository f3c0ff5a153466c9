"""What is the genie of the paper worth?

Who gets through when the scheduler knows the compute delays beforehand (known), waits for reports (reported) or
plans on a quantile of their law (planned). Timing only: nothing trains.
"""

from pathlib import Path
from typing import Annotated

import typer

from edgesim.scenario import conclude, names, numbers, plain_errors
from edgesim.study import Study, grid, run_study

PAPER_CNN_BITS = 17_881_664.0


@plain_errors
def main(
    policies: Annotated[str, typer.Option(help="Policies that do not look at training.")] = "random",
    knowledge: Annotated[str, typer.Option(help="What the scheduler knows.")] = "known,reported,planned",
    tmax: Annotated[str, typer.Option(help="Deadlines in seconds.")] = "0.8,1.0,1.2",
    quantile: Annotated[float, typer.Option(help="Quantile that `planned` plans on.")] = 0.95,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 20,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 60,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")] = None,
    out: Annotated[Path, typer.Option(help="Study folder.")] = Path("runs/delay-knowledge"),
) -> None:
    """Compare what the scheduler may know of this round's compute delays."""
    print(f"Timing only: {seeds} seeds x {rounds} rounds; reports are awaited until the deadline itself.")
    runs = []
    for deadline_s in numbers(tmax):
        base = {
            "rounds": rounds,
            "data": {"dataset": "digits"},
            "learning": {"training": "none"},
            "round": {"payload_bits": PAPER_CNN_BITS, "plan_quantile": quantile, "report_by_s": deadline_s},
        }
        axes = {
            "selection.policy": names(policies),
            "round.tmax_s": [deadline_s],
            "round.delay_knowledge": names(knowledge),
        }
        runs += grid(base, axes, range(seeds))
    run_study(Study(out.name, runs), out, jobs)
    conclude(out)


if __name__ == "__main__":
    typer.run(main)
