"""What is it worth to know this round's compute delays before they are over?

Which devices get through when the scheduler knows the compute delays beforehand (known), waits for reports (reported)
or plans on a quantile of their law (planned); with --learn also the seconds, joules and accuracy that it is worth.
"""

import itertools
from typing import Annotated

from typer import Option

from edgesim.scenario import Rounds, Runs, names, numbers, scenario, start

PAPER_CNN_BITS = 17_881_664.0
QUICK = {"quantiles": "0.8,0.95", "tmax": "0.8,1.0", "seeds": 2, "rounds": 5, "out": "runs/delay-knowledge-quick"}


@scenario(quick=QUICK)
def main(
    runs: Runs,
    learn: Annotated[bool, Option("--learn", help="Train on digits, and race to a target accuracy.")] = False,
    policies: Annotated[str | None, Option(help="random when absent, fedteddi with --learn.")] = None,
    knowledge: Annotated[
        str, Option(help="What the scheduler knows of delays: known, reported or planned.")
    ] = "known,reported,planned",
    quantiles: Annotated[str, Option(help="Quantiles that `planned` plans on.")] = "0.8,0.95,0.99",
    tmax: Annotated[str, Option(help="Deadlines in seconds.")] = "0.8,1.0,1.2",
    seeds: Annotated[int | None, Option(min=1, help="Number of seeds; 12 when absent, 5 with --learn.")] = None,
    rounds: Rounds = 60,
    target: Annotated[float, Option(min=0, max=1, help="Accuracy to race to (--learn).")] = 0.75,
) -> None:
    """Compare what the scheduler may know of this round's compute delays."""
    runs.seeds = seeds or (5 if learn else 12)
    runs.name_folder("delay-knowledge-learn" if learn else "delay-knowledge")
    what = "Digits" if learn else "Timing only"
    print(f"{what}: {runs.seeds} seeds x {rounds} rounds; reports are awaited until the deadline itself.")
    base = {
        "rounds": rounds,
        "data": {"partition": "fedteddi"},
        "learning": {"training": "real" if learn else "none", "pretrain": True},
        "round": {"payload_bits": PAPER_CNN_BITS},
    }
    compared = names(policies or ("fedteddi" if learn else "random"))
    for deadline_s, kind in itertools.product(numbers(tmax), names(knowledge)):
        axes = {"selection.policy": compared, "round.tmax_s": [deadline_s], "round.delay_knowledge": [kind]}
        if kind == "planned":
            axes["round.plan_quantile"] = numbers(quantiles)
        # Reports are awaited until the deadline.
        knobs = {"report_by_s": deadline_s} if kind == "reported" else {}
        runs.add(base | {"round": {"payload_bits": PAPER_CNN_BITS} | knobs}, axes)
    against = [("delay_knowledge", "known")]
    runs.compare(target=target if learn else None, reference=compared[0], against=against)


if __name__ == "__main__":
    start(main)
