"""What does each part of FedDance's utility bring, and how long a memory of accuracy does it need?

FedDance without its factors V (availability), A (accuracy gain), I (importance), VA or the bonus U, with the gain as
the paper prints it, with a guess for devices that were selected and have never delivered, and with other accuracy
windows beta (FedDance, figs. 12 to 16).
"""

from pathlib import Path
from typing import Annotated

import typer
from feddance import SETTINGS, phones, setting_of

import edgesim
from edgesim.scenario import (
    Folder,
    Fresh,
    Jobs,
    Out,
    Seeds,
    Set,
    conclude,
    counts,
    names,
    plain_errors,
    quick_option,
    start,
)

QUICK = quick_option(devices=100, rounds=12, seeds=1, target=0.6, out="runs/feddance-ablation-quick")


@plain_errors
def main(
    dataset: Annotated[str, typer.Option(help="Data set, as in feddance.py.")] = "digits",
    folder: Folder = Path("data"),
    setting: Annotated[str | None, typer.Option(help=f"Whose training: {', '.join(SETTINGS)}.")] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Height and width of the pictures for the model; the setting's.")
    ] = None,
    trace: Annotated[str, typer.Option(help="FILE, synthetic or always.")] = "sample-week",
    without: Annotated[str, typer.Option(help="Parts left out, each alone.")] = "VA,I,V,A,U",
    windows: Annotated[str, typer.Option(help="Accuracy windows beside FedDance's 5.")] = "3,10",
    participants: Annotated[int, typer.Option(min=1, help="Devices per round.")] = 10,
    skew: Annotated[str, typer.Option(help="Who holds uneven data: same, preprint, available or rare.")] = "same",
    devices: Annotated[int, typer.Option(min=1, help="Number of devices.")] = 200,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 120,
    target: Annotated[float | None, typer.Option(min=0, max=1, help="Accuracy to race to; the setting's.")] = None,
    seeds: Seeds = 24,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/feddance-ablation"),
) -> None:
    """Compare FedDance with its own parts."""
    setting = setting_of(dataset, setting)
    base = phones(dataset, setting, trace, skew, devices, participants, rounds, folder, image_size)
    variants = {"full": {}, **{f"without-{part}": {"without": part} for part in names(without)}}
    variants |= {"paper-gain": {"acc_map": "paper"}, "unheard-guess": {"unheard": "guess"}}
    variants |= {f"beta-{window}": {"accuracy_window": window} for window in counts(windows)}
    runs = []
    for variant, options in variants.items():
        own = base | {"selection": {"policy": "feddance", **options}}
        runs += edgesim.grid(own, {"selection.policy": ["feddance"]}, range(seeds), set_, labels={"variant": variant})
    target = SETTINGS[setting].target if target is None else target
    edgesim.study(runs, out=out, target=target, reference="feddance", jobs=jobs, fresh=fresh)
    conclude(out, against=[("variant", "full")])


if __name__ == "__main__":
    start(main)
