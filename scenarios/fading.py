"""What does fading cost, and what makes up for it: re-sharing the band, or planning with a margin?

The scheduler plans on the average gain; under Rayleigh fading the upload lives with its own draw. Compares static with
fading channels, reservations with a band that is shared anew at every start and end, plans on the average with plans on
the gain that fading falls below with some probability (`round.outage`), and what is learnt.
"""

from typing import Annotated

from typer import Option

from edgesim.scenario import Policies, Rounds, Runs, Target, names, numbers, scenario, start

PAPER_CNN_BITS = 17_881_664.0


@scenario("runs/fading", quick={"seeds": 1, "rounds": 4, "target": 0.6})
def main(
    runs: Runs,
    policies: Policies = "random,fedteddi",
    channel: Annotated[str, Option(help="Radio environment.")] = "fedteddi-macro",
    outage: Annotated[str, Option(help="Probabilities of a fade below the gain planned on.")] = "0.05",
    tmax: Annotated[str, Option(help="Deadlines in seconds.")] = "1.0",
    rounds: Rounds = 60,
    target: Target = 0.75,
) -> None:
    """Compare static with fading channels, reserved with re-shared bands, and plans without and with a margin."""
    base = {
        "rounds": rounds,
        "radio": {"channel": channel},
        "round": {"payload_bits": PAPER_CNN_BITS},
        "data": {"partition": "fedteddi"},
        "learning": {"pretrain": True},
    }
    axes = {
        "selection.policy": names(policies),
        "round.tmax_s": numbers(tmax),
        "radio.fading": ["none", "rayleigh"],
        "radio.sharing": ["reserved", "reshared"],
    }
    runs.add(base, axes, labels={"plan": "average"})
    for margin in numbers(outage):
        planned = base | {"round": {"payload_bits": PAPER_CNN_BITS, "outage": margin}}
        runs.add(planned, axes | {"radio.fading": ["rayleigh"]}, labels={"plan": f"outage-{margin:g}"})
    runs.compare(target=target, against=[("fading", "none"), ("sharing", "reserved"), ("plan", "average")])


if __name__ == "__main__":
    start(main)
