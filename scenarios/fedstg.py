"""FedStg beside FedAvg, FedProx and FedDyn where label mixes rotate and devices join by how they do.

Four methods under one law of drift and one of joining (figure 1, table 1 of the paper), and FedStg without its
rotation, with all devices in every round, and with a model in every round (table 2). ``--mode paper`` is what the paper
says, ``--mode code`` what its public program does; the two differ in nearly everything, see docs/papers/fedstg.md.
FedStg skips rounds as ``skip`` says: ``discard`` in the paper's mode, and ``fedstg-carry`` beside it;
``sent`` in the program's, whose skipped rounds save nothing.

Digits with an MLP on ten devices stand in for CIFAR-10 on twenty, which is for the user to bring (``--dataset cifar10
--folder FOLDER``, or cifar100), with the paper's network, augmentation and learning rates then.
"""

import itertools
from dataclasses import dataclass
from functools import partial
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
    figures,
    names,
    plain_errors,
    quick_option,
    start,
    tables,
)

POOLS: dict[str, str] = {"paper": "iid_partition", "code": "shared"}
DRIFT: dict[str, dict[str, Any]] = {
    "paper": {"speed": 2.0, "classes": [6, 8]},
    "code": {"speed": 0.15, "classes": [4, 6]},
}
WORK: dict[str, dict[str, Any]] = {
    "paper": {"epochs": [3, 5], "batch_size": [32, 64]},
    "code": {"epochs": 2, "batch_size": 32},
}
MERGING: dict[str, dict[str, Any]] = {
    "paper": {"signal": "validation", "skip": "discard"},
    "code": {"signal": "test", "skip": "sent"},
}
METHODS: dict[str, dict[str, Any]] = {
    "fedstg": {},
    "fedavg": {"algorithm": {"name": "fedavg"}},
    "fedprox": {"algorithm": {"name": "fedprox", "mu": 0.01}},
    "feddyn": {"algorithm": {"name": "feddyn", "alpha": 0.01}, "learning": {"clip_norm": 10.0}},
    "fedstg-no-rotation": {"drift": {"rotates": False}},
    "fedstg-all-join": {"joining": None},
    "fedstg-every-round": {"merging": None},
    "fedstg-carry": {"merging": {"skip": "carry"}},
    "fedstg-no-rarity": {"algorithm": {"rarity": False}},
    "fedstg-no-speed": {"algorithm": {"speeds": [1.0]}},
}
"""What of FedStg's config is another; the baselines make a model of every round. mu is not in the paper."""
BASELINES = ("fedavg", "fedprox", "feddyn")
FIGURE_1 = ("fedstg", *BASELINES)
DEFAULT = [name for name in METHODS if name not in ("fedstg-no-rarity", "fedstg-no-speed")]
DIGITS: dict[str, Any] = {"model": "mlp", "lr": 0.1, "momentum": 0.9}
CIFAR: dict[str, Any] = {"model": "fedstg-cnn", "lr": 0.001, "momentum": 0.9, "weight_decay": 5e-4}
QUICK = quick_option(methods="fedstg,fedavg,fedstg-every-round", rounds=8, seeds=1, out="runs/fedstg-quick")


@dataclass(frozen=True)
class Setting:
    """What all runs of a study have in common."""

    mode: str
    dataset: str
    folder: Path
    rounds: int
    devices: int
    model: str | None

    def config(self, method: str, pool: str) -> dict[str, Any]:
        """Config of the runs of a method on a pool; raises `EdgesimError` for an unknown method."""
        if method not in METHODS:
            raise edgesim.EdgesimError(f"--methods: unknown {method!r}; known: {', '.join(METHODS)}")
        digits = self.dataset == "digits"
        pixels = {} if digits else {"augment": "fedstg", "scale": 127.5, "offset": 127.5}
        learning = (DIGITS if digits else CIFAR) | WORK[self.mode] | ({"model": self.model} if self.model else {})
        config = {
            "rounds": self.rounds,
            "devices": {"count": self.devices},
            "round": {
                "tmax_s": 3600.0,
                "computes": "selected",
                "allocator": "equal_share",
                "admission": "count",
                "count": self.devices,
            },
            "data": {
                "dataset": self.dataset,
                "folder": str(self.folder),
                "validation_per_class": {"digits": 20, "cifar10": 200}.get(self.dataset, 20),
                **pixels,
            },
            "drift": {"law": "rotation", "pool": pool, **DRIFT[self.mode]},
            "joining": {"law": "fedstg", "form": self.mode},
            "learning": {"pretrain": False, "lr_schedule": "fedstg", "lr_rounds": self.rounds, **learning},
            "algorithm": {"name": "fedstg"},
            "merging": MERGING[self.mode],
        }
        if self.mode == "code":
            del config["data"]["validation_per_class"]
        if method in BASELINES:
            del config["algorithm"], config["merging"]
        for section, other in METHODS[method].items():
            if other is None:
                config.pop(section)
            else:
                config[section] = config.get(section, {}) | other
        return config


@plain_errors
def main(
    mode: Annotated[str, typer.Option(help="paper: what the paper says; code: its public program.")] = "paper",
    methods: Annotated[
        str, typer.Option(help="Methods, the reference first; also fedstg-no-rarity, fedstg-no-speed.")
    ] = ",".join(DEFAULT),
    pools: Annotated[
        str | None, typer.Option(help="iid_partition, shared or both; by the mode when absent (paper, code).")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(min=1, help="Number of devices; 10 on digits, else the paper's 20.")
    ] = None,
    seeds: Seeds = 3,
    rounds: Annotated[int, typer.Option(min=6, help="Rounds of each run.")] = 100,
    dataset: Annotated[str, typer.Option(help="Data set: a name, an .npz or a folder.")] = "digits",
    folder: Folder = Path("data"),
    model: Annotated[str | None, typer.Option(help="Model; mlp on digits, else fedstg-cnn.")] = None,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: OutOrNone = None,
) -> None:
    """Compare FedStg with its baselines, and with what it leaves out."""
    if mode not in POOLS:
        raise edgesim.EdgesimError(f"--mode: expected {' or '.join(POOLS)} (got {mode!r})")
    fleet = devices or (10 if dataset == "digits" else 20)
    setting = Setting(mode, dataset, folder, rounds, fleet, model)
    out = out or Path("runs") / f"fedstg-{mode}-{Path(dataset).stem}"
    runs: list[edgesim.PlannedRun] = []
    for pool, method in itertools.product(names(pools or POOLS[mode]), names(methods)):
        labels = {"mode": mode, "dataset": Path(dataset).stem, "pool": pool, "method": method}
        runs += edgesim.grid(setting.config(method, pool), {}, range(seeds), set_, labels=labels)
    study = edgesim.study(runs, out=out, jobs=jobs, fresh=fresh)
    conclude(out, [("method", names(methods)[0])])
    if compared := [run for run in study.runs.values() if run.knobs["method"] in FIGURE_1]:
        draws = partial(figures.draw_accuracy, figures.panels_of(compared), "rounds")
        figures.Album(out / "plots").add("figure_1", draws, compared)
    tables.beside_fedstg(out)


if __name__ == "__main__":
    start(main)
