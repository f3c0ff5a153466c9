"""Does it help to choose devices by a score, and to weigh their updates by how far they moved? AFL beside its paper.

Fifty devices in FedTeddi's cell share its band equally, at the speeds of recorded phones; a round ends with its last
upload. The methods are FedAvg with random devices at several rates, AFL (the 35 % with the highest scores, a tenth of
them at random, newcomers first; weights by lambda 0.1), and centralised training: one device, the first phone, that
holds all data and makes as many passes over them as the devices of ``fedavg-50`` do together, over a link of one bit.
So its simulated seconds are those of one phone without a network, and say nothing about a data centre's; compare it by
rounds. As everywhere, Adam's moments begin at zero in each round.

With ``--controls`` the parts of AFL are compared with FedAvg at the same rate instead (`CONTROLS`), and with
``--scaling`` how the time of a round grows with the number of devices, each with the same number of samples.

Skews: ``iid`` (equal mixes), ``moderate`` (Dirichlet(1.0) per class over devices), ``high`` (Dirichlet(0.3)). The paper
names no data set and no value of lambda, of the scores' weights or of m; what stands here is edgesim's reading.
docs/papers/afl.md defines the figures and tells what was found.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import edgesim
from edgesim.scenario import (
    Folder,
    Fresh,
    Seeds,
    Set,
    conclude,
    counts,
    figures,
    known,
    names,
    plain_errors,
    quick_option,
    start,
    tables,
)

SKEWS = {"iid": 1e4, "moderate": 1.0, "high": 0.3}
"""Dirichlet parameters."""
EPOCHS, RATE = 2, 0.35
SMALL = ("digits", "iris", "wine", "breast-cancer")
"""Data sets of which a device holds few samples: a dense net and the paper's least batch and highest rate of Adam."""
SCALING_SAMPLES = 40
"""Samples of each device where their number grows: more devices than the set has samples for share some."""


AFL: dict[str, Any] = {"share": RATE, "selection": {"policy": "afl"}, "algorithm": {"server": "afl"}}
METHODS: dict[str, dict[str, Any]] = {
    **{f"fedavg-{percent}": {"share": percent / 100} for percent in (50, 10, 30, 100)},
    "afl": AFL,
    "centralised": {"share": 0.5, "central": True},
}
"""The rate of participation, and what else is set; the reference comes first."""
CONTROLS: dict[str, dict[str, Any]] = {
    "fedavg-35": {"share": RATE},
    "afl": AFL,
    "literal": AFL | {"selection": {"policy": "afl", "explore": 0.0}},
    "adaptive": AFL | {"share": 0.5, "selection": {"policy": "afl", "participants": "adaptive"}},
    "selection-only": AFL | {"algorithm": {"server": "afl", "sensitivity": 0.0}},
    "weights-only": {"share": RATE, "algorithm": {"server": "afl"}},
    "median-weights": {"share": RATE, "algorithm": {"server": "afl", "sensitivity": 1.0, "delta_norm": "median"}},
    "clip-only": {"share": RATE, "privacy": {"mechanism": "clip"}},
}


def world(dataset: str, folder: Path, rounds: int, model: str | None, clients: int) -> dict[str, Any]:
    """What all runs have in common, with the paper's local training as far as it tells it."""
    small = dataset in SMALL
    return {
        "rounds": rounds,
        # No deadline: a round ends with its last upload.
        "round": {"tmax_s": 86_400.0, "computes": "selected", "allocator": "equal_share", "admission": "count"},
        "devices": {"count": clients, "profile": "sample-phones"},
        "data": {"dataset": dataset, "folder": str(folder)},
        "learning": {
            "model": model or ("afl-mlp" if small else "afl-cnn"),
            "optimiser": "adam",
            "lr": 0.01 if small else 0.001,
            "lr_decay": 1.0,
            "batch_size": 32 if small else 64,
            "epochs": EPOCHS,
            "pretrain": False,
        },
        "evaluation": {"measures": "all"},
    }


def dealt(alpha: float) -> dict[str, Any]:
    """All data, divided by a Dirichlet law for each class."""
    return {"partition": "dirichlet", "partition_options": {"alpha": alpha}}


def config(common: dict[str, Any], method: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """A run of a method; ``data`` are the keys by which devices get their samples."""
    share = method["share"]
    part = common | {key: of for key, of in method.items() if key not in ("share", "central")}
    part["data"] = common["data"] | data
    if method.get("central"):
        # A Dirichlet law over one device gives it everything.
        part["devices"] = common["devices"] | {"count": 1}
        part["learning"] = common["learning"] | {"epochs": round(share * EPOCHS)}
        part["round"] = common["round"] | {"count": 1, "payload_bits": 1}
    else:
        part["round"] = common["round"] | {"count": known.share_of(share, common["devices"]["count"])}
    return part


def compared(
    common: dict[str, Any], methods: dict[str, dict[str, Any]], skews: list[str], seeds: int, set_: Set
) -> list[edgesim.PlannedRun]:
    """Runs of methods under skews."""
    runs = []
    for skew, (name, method) in itertools.product(skews, methods.items()):
        data = dealt(SKEWS[skew])
        labels = {"skew": skew, "method": name}
        runs += edgesim.grid(config(common, method, data), {}, range(seeds), set_, labels=labels)
    return runs


def by_skew(runs: Sequence[edgesim.Run]) -> list[figures.Panel]:
    """A panel per skew, a series per method."""
    skews: dict[str, dict[str, list[edgesim.Run]]] = {}
    for run in runs:
        skews.setdefault(str(run.knobs["skew"]), {}).setdefault(str(run.knobs["method"]), []).append(run)
    return [
        figures.Panel(
            skew if len(skews) > 1 else "",
            tuple(figures.Series(name, tuple(group)) for name, group in methods.items()),
        )
        for skew, methods in skews.items()
    ]


def beside_the_paper(out: Path, reference: str) -> None:
    """Write and print the methods beside the paper's numbers, and draw its figures but for that of scaling."""
    tables.beside_afl(out, reference)
    album = figures.Album(out / "plots")
    study = edgesim.StudyResult(out)
    runs = [*study.runs.values()]
    foremost = [run for run in runs if run.knobs["method"] in (reference, "afl", "centralised")]
    target = study.plan.target
    album.add("curves", lambda: figures.draw_accuracy(by_skew(foremost), "rounds", target), foremost, target)
    album.add("spread", lambda: figures.draw_spread(by_skew(runs)), runs)
    # What sends nothing has neither a trade-off nor a throughput.
    runs = [run for run in runs if run.knobs["method"] != "centralised"]
    album.add("tradeoff", lambda: figures.draw_cost_curves(runs, "skew", "method", ("afl", reference)), runs, reference)
    album.add("throughput", lambda: figures.draw_throughput(by_skew(runs)), runs)
    summary = study.table()
    summary = summary[(summary["method"] != "centralised") & (summary["seeds"] > 0)]
    album.add("radar", lambda: figures.draw_radar(summary, "skew", "method"), runs)


def scale(
    common: dict[str, Any], devices: list[int], samples: int, seeds: int, set_: Set, out: Path, jobs: int, fresh: bool
) -> None:
    """Time the rounds of FedAvg and AFL with more and more devices, one run after another unless ``jobs`` says else."""
    runs: list[edgesim.PlannedRun] = []
    data = {"partition": "iid", "samples_per_device": samples}
    for name, count in itertools.product(("fedavg-50", "afl"), devices):
        world = common | {"devices": common["devices"] | {"count": count}}
        labels = {"method": name, "devices": count}
        runs += edgesim.grid(config(world, METHODS[name], data), {}, range(seeds), set_, labels=labels)
    study = edgesim.study(runs, out=out, jobs=jobs, fresh=fresh)
    conclude(out)
    tables.growth(out)
    finished = [*study.runs.values()]
    figures.Album(out / "plots").add("scaling", lambda: figures.draw_scaling(finished, "method"), finished)


QUICK = quick_option(
    methods="fedavg-50,afl,centralised", skews="high", clients=10, rounds=6, seeds=2, out="runs/afl-quick"
)


@plain_errors
def main(
    methods: Annotated[str, typer.Option(help=f"Methods to compare; also {', '.join(CONTROLS)}.")] = ",".join(METHODS),
    skews: Annotated[str, typer.Option(help="Label skews: iid, moderate, high.")] = ",".join(SKEWS),
    clients: Annotated[int, typer.Option(min=2, help="Number of devices.")] = 50,
    rounds: Annotated[int, typer.Option(min=3, help="Rounds of each run (the paper: 100 to 300).")] = 100,
    seeds: Seeds = 5,
    target: Annotated[float, typer.Option(help="Accuracy whose rounds are counted.")] = 0.9,
    dataset: Annotated[str, typer.Option(help="Data set: a name, an .npz or a folder.")] = "digits",
    folder: Folder = Path("data"),
    model: Annotated[str | None, typer.Option(help="Model; afl-mlp on small sets, else afl-cnn.")] = None,
    controls: Annotated[bool, typer.Option("--controls", help="Compare the parts of AFL instead.")] = False,
    scaling: Annotated[bool, typer.Option("--scaling", help="Time rounds of more and more devices instead.")] = False,
    scaling_devices: Annotated[str, typer.Option(help="Numbers of devices of --scaling.")] = "10,50,100,200,500",
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one per core, with --scaling one.")] = None,
    fresh: Fresh = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Study folder; runs/afl-<data set> when absent, with the option's name behind it."),
    ] = None,
) -> None:
    """Compare AFL with FedAvg and centralised training."""
    if controls and scaling:
        raise edgesim.EdgesimError("--controls and --scaling are studies of their own; leave out one of them")
    out = out or Path("runs") / f"afl-{Path(dataset).stem}{'-controls' * controls}{'-scaling' * scaling}"
    common = world(dataset, folder, rounds, model, clients)
    if scaling:
        scale(common, counts(scaling_devices), SCALING_SAMPLES, seeds, set_, out, jobs or 1, fresh)
        return
    chosen = list(CONTROLS) if controls else names(methods)
    methods_known = METHODS | CONTROLS
    if unknown := [name for name in chosen if name not in methods_known]:
        raise edgesim.EdgesimError(f"--methods: unknown {unknown[0]!r}; known: {', '.join(methods_known)}")
    if unknown := [name for name in names(skews) if name not in SKEWS]:
        raise edgesim.EdgesimError(f"--skews: unknown {unknown[0]!r}; known: {', '.join(SKEWS)}")
    reference = "fedavg-35" if controls else "fedavg-50" if "fedavg-50" in chosen else chosen[0]
    runs = compared(common, {name: methods_known[name] for name in chosen}, names(skews), seeds, set_)
    edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh)
    conclude(out, [("method", reference)])
    beside_the_paper(out, reference)


if __name__ == "__main__":
    start(main)
