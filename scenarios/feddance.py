"""FedDance's study: who should take part when phones come and go?

FedDance, Oort, REFL, SAFA (lite), FedCS, random choice and an availability-first control on the same phones, data and
links; rounds of 100 s (FedDance, tables 2 and 3, figs. 4, 5, 9 and 17).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from typer import Option

import edgesim
from edgesim.scenario import Runs, counts, names, published, refuse_unknown, scenario, short_names, start, tables

SELECTORS = "random,safa-lite,oort,refl,feddance,fedcs,availability-first"
PHONE_UPDATE_BITS = 17_881_664.0
NAN = float("nan")
PAPER = {
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "lr_decay": 0.98,
    "lr_decay_every": 10,
    "lr_min": 5e-5,
    "pretrain": False,
}
PAPERS_TASKS = ("EMNIST", "Tiny-ImageNet", "Speech", "CIFAR-10")
PUBLISHED = {
    "random": ((421, 670, 522, 510), (84.30, 22.01, 44.99, 51.09)),
    "safa-lite": ((552, 989, 821, 711), (83.49, 19.48, 34.14, 45.71)),
    "safa": ((552, 989, 821, 711), (83.49, 19.48, 34.14, 45.71)),
    "oort": ((530, 978, 483, 532), (82.18, 19.82, 42.35, 49.07)),
    "refl": ((542, 890, 630, 989), (83.26, 20.80, 43.33, 44.28)),
    "feddance": ((303, 559, 420, 440), (85.99, 25.58, 46.97, 52.67)),
}
"""Rounds to the target accuracy (79, 19, 31 and 45 %), and test accuracy in per cent after 1,000 rounds (mean of three
runs), by task. The paper does not say which form of SAFA it ran, so both stand here with its numbers."""
COLUMNS = {
    "rounds": ("rounds", "{:.1f}"),
    "rounds_bound": ("or more than", "{:.1f}"),
    "never": ("never", "{:.0f}"),
    "speed_up": ("speed-up", "{:.2f}"),
    "paper_speed_up": ("the paper's speed-ups", "{}"),
    "accuracy": ("accuracy (%)", "{:.2f}"),
    "sd": ("± sd", "{:.2f}"),
    "points": ("points", "{:+.2f}"),
    "paper_points": ("the paper's points", "{}"),
    "devices": ("devices", "{:.1f}"),
}
"""Rounds to the target, NaN where some runs ``never`` reached it, then with a lower bound; speed-up over random; points
above random; devices that, used alike, would be as uneven. The paper's are texts with a number per task."""


@dataclass(frozen=True)
class Setting:
    """Local training, and the accuracy to race to."""

    training: dict[str, Any]
    target: float
    image_size: int | None = None
    """Height and width to which pictures are brought; as stored when absent."""
    slots: int | None = None
    """Samples that a device has room for; those for training over the devices when absent, as in the paper's code."""


SETTINGS: dict[str, Setting] = {
    "digits": Setting({"model": "mlp", "steps": 5, "batch_size": 24, "lr": 0.1}, 0.9, slots=50),
    "fashion-mnist": Setting({"model": "mlp", "steps": 5, "batch_size": 24, "lr": 0.05}, 0.8, slots=50),
    "emnist-balanced": Setting({"model": "resnet18-bn-imagenet", "steps": 1, "batch_size": 32, "lr": 0.1}, 0.79, 224),
    "tiny-imagenet": Setting(
        {"model": "torchvision:shufflenet_v2_x2_0", "steps": 4, "batch_size": 20, "lr": 0.2}, 0.19, 224
    ),
    "speech": Setting({"model": "resnet34-bn-imagenet", "steps": 1, "batch_size": 32, "lr": 0.075}, 0.31),
    "cifar10": Setting({"model": "resnet18-bn-imagenet", "steps": 1, "batch_size": 24, "lr": 0.1}, 0.45),
}
"""The paper's four; digits and fashion-mnist are ours, for machines without a GPU."""
RAMP = [[0.1, 2.0], [50.0, 100.0]]
SKEWS: dict[str, tuple[str, Any]] = {
    "same": ("given", 0.1),
    "preprint": ("given", RAMP),
    "available": ("falling", RAMP),
    "rare": ("rising", RAMP),
}
"""Order of the devices by their time online, and alpha: who holds the most uneven data."""


def availability(trace: str, order: str) -> dict[str, Any]:
    """Section of a trace: a file, ``synthetic`` (drawn by the seed) or ``always``."""
    if trace == "always":
        return {"model": "always"}
    drawn = {"model": "renewal"} if trace == "synthetic" else {"model": "table", "file": trace, "after_end": "wrap"}
    return drawn | {"order": order}


def phones(
    dataset: str,
    setting: str,
    trace: str,
    skew: str,
    devices: int,
    participants: int,
    rounds: int,
    image_size: int | None = None,
) -> dict[str, Any]:
    """Config of the paper's world, less the policy; raises `EdgesimError` for unknown words.

    Of 50 slots a device fills some 45, as in the paper's CIFAR-10. The model comes and the update goes over each
    phone's own link. Digits are charged 17,881,664 bits each way, all others those of their own model. ``image_size``
    is the setting's when absent.
    """
    refuse_unknown("--setting", [setting], SETTINGS)
    refuse_unknown("--skew", [skew], SKEWS)
    order, alpha = SKEWS[skew]
    options = {"alpha": alpha} | ({"labels_per_device": 50} if setting == "tiny-imagenet" else {})
    return {
        "rounds": rounds,
        "devices": {"count": devices, "profile": "sample-phones"},
        "radio": {"sharing": "own"},
        "availability": availability(trace, order),
        "round": {
            "tmax_s": 100.0,
            "close": "deadline",
            "computes": "selected",
            "admission": "count",
            "count": participants,
            "payload_bits": PHONE_UPDATE_BITS if setting == "digits" else "model",
            "download_s": "link",
        },
        "data": {
            "dataset": dataset,
            "image_size": image_size or SETTINGS[setting].image_size,
            "partition": "dirichlet-labels",
            "partition_options": options,
            "samples_per_device": SETTINGS[setting].slots,
        },
        "learning": PAPER | SETTINGS[setting].training,
        "algorithm": {"weights": "equal"},
        "evaluation": {"every": 1},
    }


def add(runs: Runs, base: dict[str, Any], policies: list[str], labels: dict[str, str | float]) -> None:
    """Plan runs of every policy.

    REFL's alone keep late updates, by its own weights, as its study has them. In SAFA's everybody who is there trains,
    a tenth of them is picked, and the server keeps its cache. FedCS plans uploads side by side, as own links have them.
    """
    for policy in policies:
        own = base
        if policy == "safa":
            rounds = {key: value for key, value in base["round"].items() if key not in ("admission", "count")}
            rounds["computes"] = "candidates"
            own = base | {"round": rounds, "algorithm": {"name": "safa"}}
        if policy == "refl":
            own = base | {"round": base["round"] | {"late": "keep"}, "staleness": {"weight": "refl"}}
        if policy == "fedcs":
            own = base | {"selection": {"uploads": "parallel"}}
        runs.add(own, {"selection.policy": [policy]}, labels=labels)


def setting_of(dataset: str, setting: str | None) -> str:
    """Whose training a data set gets when none is named; raises `EdgesimError` for what is a setting alone."""
    if dataset in SETTINGS and dataset not in edgesim.datasets():
        raise edgesim.EdgesimError(
            f"--dataset: {dataset!r} is a setting, not a data set; give --dataset FOLDER --setting {dataset}"
        )
    return setting or (dataset if dataset in SETTINGS else "cifar10")


def of_the_paper(policy: str) -> tuple[str, str]:
    """The paper's speed-ups over random and points above it, one per task; empty for policies not in the paper."""
    if policy not in PUBLISHED or policy == "random":
        return "", ""
    (rounds, accuracy), (their_rounds, their_accuracy) = PUBLISHED[policy], PUBLISHED["random"]
    return (
        " ".join(f"{theirs / own:.2f}" for theirs, own in zip(their_rounds, rounds, strict=True)),
        " ".join(f"{own - theirs:+.1f}" for theirs, own in zip(their_accuracy, accuracy, strict=True)),
    )


def beside_the_paper(folder: Path) -> pd.DataFrame:
    """One row per combination of a study's knobs: these, and `COLUMNS`."""
    groups, rows = published.groups(folder), []
    for row, runs in groups:
        knobs = {name: row[name] for name in runs[0].knobs}
        beside = knobs | {"policy": "random"}
        random = next((base for base, _ in groups if beside.items() <= base.items()), {})
        rounds, theirs = (NAN if of.get("not_reached", 1) else of["rounds_to_target"] for of in (row, random))
        accuracy = [100 * published.measure(run, None).get("final_accuracy", NAN) for run in runs]
        speed_ups, points = of_the_paper(row["policy"])
        measures = {
            "rounds": rounds,
            "rounds_bound": row["rounds_to_target_bound"],
            "never": row["not_reached"],
            "speed_up": theirs / rounds,
            "paper_speed_up": speed_ups,
            "accuracy": float(np.mean(accuracy)),
            "sd": float(np.std(accuracy, ddof=1)) if len(accuracy) > 1 else NAN,
            "points": float(np.mean(accuracy)) - 100 * random.get("final_accuracy", NAN),
            "paper_points": points,
            "devices": float(np.mean([published.devices_used(run) for run in runs])),
        }
        rows.append(knobs | measures)
    return pd.DataFrame(rows)


@scenario(seeds=24, quick={"selectors": f"{SELECTORS},safa", "devices": 100, "rounds": 8, "seeds": 1, "target": 0.6})
def main(
    runs: Runs,
    dataset: Annotated[str, Option(help="Data set: a name, an .npz or a folder (images, or wav files).")] = "digits",
    setting: Annotated[str | None, Option(help=f"Whose training: {', '.join(SETTINGS)}.")] = None,
    image_size: Annotated[
        int | None, Option(min=1, help="Height and width of the pictures for the model; the setting's.")
    ] = None,
    trace: Annotated[str, Option(help="FILE, synthetic or always; several to compare.")] = "sample-week",
    selectors: Annotated[
        str, Option(help="Policies to compare; safa, the full one, learns so slowly that it needs its own study.")
    ] = SELECTORS,
    participants: Annotated[str, Option(help="Devices per round; several to compare.")] = "10",
    skew: Annotated[str, Option(help="Who holds uneven data: same, preprint, available or rare.")] = "same",
    devices: Annotated[int, Option(min=1, help="Number of devices (the paper: 1000).")] = 200,
    rounds: Annotated[int, Option(min=1, help="Rounds of each run (the paper: 1000).")] = 120,
    target: Annotated[float | None, Option(min=0, max=1, help="Accuracy to race to; the setting's.")] = None,
) -> None:
    """Compare participant selection under intermittent availability."""
    setting = setting_of(dataset, setting)
    runs.name_folder(f"feddance-{Path(dataset).stem}{'-quick' * runs.quick}")
    for label, name in zip(short_names(names(trace)), names(trace), strict=True):
        for count in counts(participants):
            base = phones(dataset, setting, name, skew, devices, count, rounds, image_size)
            add(runs, base, names(selectors), {"trace": label, "participants": count})
    world = f"{devices} phones, rounds of 100 s, {dataset} with the training of {setting}"
    print(f"{world}, {rounds} rounds, {runs.seeds} seeds.")
    study = runs.compare(target=SETTINGS[setting].target if target is None else target)
    table = beside_the_paper(study.folder)
    tables.save(table, study.folder / "beside-the-paper.csv")
    tables.show(table, f"Beside the paper, whose tasks are {', '.join(PAPERS_TASKS)}", COLUMNS)


if __name__ == "__main__":
    start(main)
