"""What is it worth to know this round's compute delays before they are over?

Which devices get through when the scheduler knows the compute delays beforehand (known), waits for reports (reported)
or plans on a quantile of their law (planned); with --learn also the seconds, joules and accuracy that it is worth.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

import edgesim
from edgesim.scenario import (
    Folder,
    Fresh,
    Jobs,
    OutOrNone,
    Set,
    conclude,
    names,
    numbers,
    plain_errors,
    quick_option,
    start,
)

PAPER_CNN_BITS = 17_881_664.0
QUICK = quick_option(quantiles="0.8,0.95", tmax="0.8,1.0", seeds=2, rounds=5, out="runs/delay-knowledge-quick")


def ways_to_know(
    base: dict[str, Any],
    axes: dict[str, list[Any]],
    knowledge: list[str],
    quantiles: list[float],
    seeds: int,
    set_: Set,
) -> list[edgesim.PlannedRun]:
    """Runs of every deadline and way to know; reports are awaited until the deadline, plans rest on each quantile."""
    runs = []
    for deadline_s in axes["round.tmax_s"]:
        for kind in knowledge:
            knobs = {"report_by_s": deadline_s} if kind == "reported" else {}
            kinds = axes | {"round.tmax_s": [deadline_s], "round.delay_knowledge": [kind]}
            if kind == "planned":
                kinds["round.plan_quantile"] = quantiles
            runs += edgesim.grid(base | {"round": base["round"] | knobs}, kinds, range(seeds), set_)
    return runs


@plain_errors
def main(
    learn: Annotated[bool, typer.Option("--learn", help="Train on digits, and race to a target accuracy.")] = False,
    policies: Annotated[str | None, typer.Option(help="random when absent, fedteddi with --learn.")] = None,
    knowledge: Annotated[
        str, typer.Option(help="What the scheduler knows of delays: known, reported or planned.")
    ] = "known,reported,planned",
    quantiles: Annotated[str, typer.Option(help="Quantiles that `planned` plans on.")] = "0.8,0.95,0.99",
    tmax: Annotated[str, typer.Option(help="Deadlines in seconds.")] = "0.8,1.0,1.2",
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds; 12 when absent, 5 with --learn.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 60,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to (--learn).")] = 0.75,
    folder: Folder = Path("data"),
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: OutOrNone = None,
) -> None:
    """Compare what the scheduler may know of this round's compute delays."""
    seeds = seeds or (5 if learn else 12)
    out = out or Path("runs/delay-knowledge-learn" if learn else "runs/delay-knowledge")
    what = "Digits" if learn else "Timing only"
    print(f"{what}: {seeds} seeds x {rounds} rounds; reports are awaited until the deadline itself.")
    base = {
        "rounds": rounds,
        "data": {"folder": str(folder)},
        "learning": {"training": "real" if learn else "none"},
        "round": {"payload_bits": PAPER_CNN_BITS},
    }
    axes = {
        "selection.policy": names(policies or ("fedteddi" if learn else "random")),
        "round.tmax_s": numbers(tmax),
    }
    runs = ways_to_know(base, axes, names(knowledge), numbers(quantiles), seeds, set_)
    first = axes["selection.policy"][0]
    edgesim.study(runs, out=out, target=target if learn else None, reference=first, jobs=jobs, fresh=fresh)
    conclude(out, against=[("delay_knowledge", "known")])


if __name__ == "__main__":
    start(main)
