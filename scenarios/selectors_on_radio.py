"""Selectors for phones that come and go beside those for a cell: one band, one deadline, one trace, one drift.

No paper has this comparison. 200 phones of a trace share FedTeddi's cell; a round is the 30 s of its larger setting,
the update that of its ResNet-18; least bandwidths decide who fits; at the start, 40 % have just met a new class. All
selectors run under one protocol, so REFL does without the late updates that its own study keeps.
"""

from typing import Annotated

from feddance import availability
from typer import Option

from edgesim.scenario import Devices, Model, Policies, Rounds, Runs, Target, names, scenario, start

SELECTORS = "random,best-channel,fed-cbs,fedteddi,oort,refl,feddance,fedcs,safa-lite"


@scenario("runs/selectors-on-radio", seeds=3, quick={"devices": 100, "rounds": 5, "seeds": 1, "target": 0.6})
def main(
    runs: Runs,
    selectors: Policies = SELECTORS,
    trace: Annotated[str, Option(help="FILE, synthetic or always.")] = "sample-week",
    devices: Devices = 200,
    tmax: Annotated[float, Option(min=0.1, help="Deadline in seconds.")] = 30.0,
    close: Annotated[str, Option(help="Rounds end at the last arrival (arrivals) or at the deadline.")] = "deadline",
    dataset: Annotated[str, Option(help="Data set of ten classes.")] = "digits",
    model: Model = "mlp",
    rounds: Rounds = 60,
    target: Target = 0.75,
) -> None:
    """Compare selectors of both worlds on one cell."""
    base = {
        "rounds": rounds,
        "devices": {"count": devices, "profile": "sample-phones"},
        "availability": availability(trace, "given"),
        "round": {"tmax_s": tmax, "close": close, "computes": "selected", "payload_bits": 357_500_000.0},
        "data": {"dataset": dataset, "partition": "fedteddi", "samples_per_device": 60},
        "learning": {"model": model, "pretrain": True},
    }
    runs.add(base, {"selection.policy": names(selectors)})
    runs.compare(target=target)


if __name__ == "__main__":
    start(main)
