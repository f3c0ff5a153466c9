"""What does each part of FedDance's utility bring, and how long a memory of accuracy does it need?

FedDance without its factors V (availability), A (accuracy gain), I (importance), VA or the bonus U, with the gain as
the paper prints it, with a guess for devices that were selected and have never delivered, and with other accuracy
windows beta (FedDance, figs. 12 to 16).
"""

from typing import Annotated

from feddance import SETTINGS, phones, setting_of
from typer import Option

from edgesim.scenario import Devices, Rounds, Runs, counts, names, scenario, start


@scenario("runs/feddance-ablation", seeds=24, quick={"devices": 100, "rounds": 12, "seeds": 1, "target": 0.6})
def main(
    runs: Runs,
    dataset: Annotated[str, Option(help="Data set, as in feddance.py.")] = "digits",
    setting: Annotated[str | None, Option(help=f"Whose training: {', '.join(SETTINGS)}.")] = None,
    image_size: Annotated[
        int | None, Option(min=1, help="Height and width of the pictures for the model; the setting's.")
    ] = None,
    trace: Annotated[str, Option(help="FILE, synthetic or always.")] = "sample-week",
    without: Annotated[str, Option(help="Parts left out, each alone.")] = "VA,I,V,A,U",
    windows: Annotated[str, Option(help="Accuracy windows beside FedDance's 5.")] = "3,10",
    participants: Annotated[int, Option(min=1, help="Devices per round.")] = 10,
    skew: Annotated[str, Option(help="Who holds uneven data: same, preprint, available or rare.")] = "same",
    devices: Devices = 200,
    rounds: Rounds = 120,
    target: Annotated[float | None, Option(min=0, max=1, help="Accuracy to race to; the setting's.")] = None,
) -> None:
    """Compare FedDance with its own parts."""
    setting = setting_of(dataset, setting)
    base = phones(dataset, setting, trace, skew, devices, participants, rounds, image_size)
    variants = {"full": {}, **{f"without-{part}": {"without": part} for part in names(without)}}
    variants |= {"paper-gain": {"acc_map": "paper"}, "unheard-guess": {"unheard": "guess"}}
    variants |= {f"beta-{window}": {"accuracy_window": window} for window in counts(windows)}
    for variant, options in variants.items():
        own = base | {"selection": {"policy": "feddance", **options}}
        runs.add(own, {"selection.policy": ["feddance"]}, labels={"variant": variant})
    target = SETTINGS[setting].target if target is None else target
    runs.compare(target=target, reference="feddance", against=[("variant", "full")])


if __name__ == "__main__":
    start(main)
