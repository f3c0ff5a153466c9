"""FedDance's study: who should take part when phones come and go?

FedDance, Oort, REFL, SAFA (lite), FedCS, random choice and an availability-first control on the same phones, data and
links; rounds of 100 s (FedDance, tables 2 and 3, figs. 4, 5, 9 and 17).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import edgesim
from edgesim.scenario import (
    Folder,
    Fresh,
    Jobs,
    OutOrNone,
    Seeds,
    Set,
    conclude,
    counts,
    names,
    plain_errors,
    quick_option,
    short_names,
    start,
    tables,
)

SELECTORS = "random,safa-lite,oort,refl,feddance,fedcs,availability-first"
PHONE_UPDATE_BITS = 17_881_664.0
PAPER = {
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "lr_decay": 0.98,
    "lr_decay_every": 10,
    "lr_min": 5e-5,
    "pretrain": False,
}
QUICK = quick_option(selectors=f"{SELECTORS},safa", devices=100, rounds=8, seeds=1, target=0.6)


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
    folder: Path = Path("data"),
    image_size: int | None = None,
) -> dict[str, Any]:
    """Config of the paper's world, less the policy; raises `EdgesimError` for unknown words.

    Of 50 slots a device fills some 45, as in the paper's CIFAR-10. The model comes and the update goes over each
    phone's own link. Digits are charged 17,881,664 bits each way, all others those of their own model. ``image_size``
    is the setting's when absent.
    """
    for option, word, known in (("--setting", setting, SETTINGS), ("--skew", skew, SKEWS)):
        if word not in known:
            raise edgesim.EdgesimError(f"{option}: unknown {word!r}; known: {', '.join(known)}")
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
            "folder": str(folder),
            "image_size": image_size or SETTINGS[setting].image_size,
            "partition": "dirichlet-labels",
            "partition_options": options,
            "samples_per_device": SETTINGS[setting].slots,
        },
        "learning": PAPER | SETTINGS[setting].training,
        "algorithm": {"weights": "equal"},
        "evaluation": {"every": 1},
    }


def compared(
    base: dict[str, Any], policies: list[str], seeds: int, labels: dict[str, str | float], set_: Set
) -> list[edgesim.PlannedRun]:
    """Runs of every policy.

    REFL's alone keep late updates, by its own weights, as its study has them. In SAFA's everybody who is there trains,
    a tenth of them is picked, and the server keeps its cache. FedCS plans uploads side by side, as own links have them.
    """
    runs = []
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
        runs += edgesim.grid(own, {"selection.policy": [policy]}, range(seeds), set_, labels=labels)
    return runs


def setting_of(dataset: str, setting: str | None) -> str:
    """Whose training a data set gets when none is named; raises `EdgesimError` for what is a setting alone."""
    if dataset in SETTINGS and dataset not in edgesim.datasets():
        raise edgesim.EdgesimError(
            f"--dataset: {dataset!r} is a setting, not a data set; give --dataset FOLDER --setting {dataset}"
        )
    return setting or (dataset if dataset in SETTINGS else "cifar10")


@plain_errors
def main(
    dataset: Annotated[
        str, typer.Option(help="Data set: a name, an .npz or a folder (images, or wav files).")
    ] = "digits",
    folder: Folder = Path("data"),
    setting: Annotated[str | None, typer.Option(help=f"Whose training: {', '.join(SETTINGS)}.")] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Height and width of the pictures for the model; the setting's.")
    ] = None,
    trace: Annotated[str, typer.Option(help="FILE, synthetic or always; several to compare.")] = "sample-week",
    selectors: Annotated[
        str, typer.Option(help="Policies to compare; safa, the full one, learns so slowly that it needs its own study.")
    ] = SELECTORS,
    participants: Annotated[str, typer.Option(help="Devices per round; several to compare.")] = "10",
    skew: Annotated[str, typer.Option(help="Who holds uneven data: same, preprint, available or rare.")] = "same",
    devices: Annotated[int, typer.Option(min=1, help="Number of devices (the paper: 1000).")] = 200,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run (the paper: 1000).")] = 120,
    target: Annotated[float | None, typer.Option(min=0, max=1, help="Accuracy to race to; the setting's.")] = None,
    seeds: Seeds = 24,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: OutOrNone = None,
) -> None:
    """Compare participant selection under intermittent availability."""
    setting = setting_of(dataset, setting)
    out = out or Path("runs") / f"feddance-{Path(dataset).stem}{'-quick' if quick else ''}"
    runs = []
    for label, name in zip(short_names(names(trace)), names(trace), strict=True):
        for count in counts(participants):
            base = phones(dataset, setting, name, skew, devices, count, rounds, folder, image_size)
            labels = {"trace": label, "participants": count}
            runs += compared(base, names(selectors), seeds, labels, set_)
    print(
        f"{devices} phones, rounds of 100 s, {dataset} with the training of {setting}, {rounds} rounds, {seeds} seeds."
    )
    target = SETTINGS[setting].target if target is None else target
    edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh)
    conclude(out)
    tables.beside_feddance(out)


if __name__ == "__main__":
    start(main)
