"""Selectors for phones that come and go beside those for a cell: one band, one deadline, one trace, one drift.

No paper has this comparison. 200 phones of a trace share FedTeddi's cell; a round is the 30 s of its larger setting,
the update that of its ResNet-18; least bandwidths decide who fits; at the start, 40 % have just met a new class. All
selectors run under one protocol, so REFL does without the late updates that its own study keeps.
"""

from pathlib import Path
from typing import Annotated

import typer
from feddance import availability

import edgesim
from edgesim.scenario import Folder, Fresh, Jobs, Out, Seeds, Set, conclude, names, plain_errors, quick_option, start

SELECTORS = "random,best-channel,fed-cbs,fedteddi,oort,refl,feddance,fedcs,safa-lite"
QUICK = quick_option(devices=100, rounds=5, seeds=1, target=0.6, out="runs/selectors-on-radio-quick")


@plain_errors
def main(
    selectors: Annotated[str, typer.Option(help="Policies to compare.")] = SELECTORS,
    trace: Annotated[str, typer.Option(help="FILE, synthetic or always.")] = "sample-week",
    devices: Annotated[int, typer.Option(min=1, help="Number of devices.")] = 200,
    tmax: Annotated[float, typer.Option(min=0.1, help="Deadline in seconds.")] = 30.0,
    close: Annotated[
        str, typer.Option(help="Rounds end at the last arrival (arrivals) or at the deadline.")
    ] = "deadline",
    dataset: Annotated[str, typer.Option(help="Data set of ten classes.")] = "digits",
    folder: Folder = Path("data"),
    model: Annotated[str, typer.Option(help="Model.")] = "mlp",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 60,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.75,
    seeds: Seeds = 3,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/selectors-on-radio"),
) -> None:
    """Compare selectors of both worlds on one cell."""
    base = {
        "rounds": rounds,
        "devices": {"count": devices, "profile": "sample-phones"},
        "availability": availability(trace, "given"),
        "round": {"tmax_s": tmax, "close": close, "computes": "selected", "payload_bits": 357_500_000.0},
        "data": {"dataset": dataset, "folder": str(folder), "samples_per_device": 60},
        "learning": {"model": model},
    }
    runs = edgesim.grid(base, {"selection.policy": names(selectors)}, range(seeds), set_)
    edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh)
    conclude(out)


if __name__ == "__main__":
    start(main)
