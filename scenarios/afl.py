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
docs/papers/afl.md defines the figures and has the results.
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from typer import Option

import edgesim
from edgesim.scenario import Runs, counts, figures, known, names, published, refuse_unknown, scenario, start, tables

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
MEASURES = {
    "final_accuracy": ("accuracy", "{:.3f}"),
    "final_macro_f1": ("macro F1", "{:.3f}"),
    "final_roc_auc": ("AUC", "{:.3f}"),
    "rounds_to_own_peak": ("rounds to\n95 % of own peak", "{:.1f}"),
    "rounds_to_target": ("rounds to\nthe target", "{:.1f}"),
    "simulated_s": ("simulated\nseconds", "{:.0f}"),
    "gigabytes": ("GB", "{:.3g}"),
}
"""What is compared, with heading and format; ``gigabytes`` are the whole run's, in both directions."""
PUBLISHED: dict[tuple[str, str], dict[str, float]] = {
    ("iid", "centralised"): {"final_accuracy": 0.924, "final_macro_f1": 0.918, "final_roc_auc": 0.94},
    ("iid", "fedavg-50"): {"final_accuracy": 0.912, "final_macro_f1": 0.905, "final_roc_auc": 0.93},
    ("iid", "afl"): {"final_accuracy": 0.918, "final_macro_f1": 0.912, "final_roc_auc": 0.94},
    ("moderate", "fedavg-50"): {"final_accuracy": 0.865, "final_macro_f1": 0.839, "final_roc_auc": 0.89},
    ("moderate", "afl"): {"final_accuracy": 0.888, "final_macro_f1": 0.87, "final_roc_auc": 0.91},
    ("high", "fedavg-50"): {"final_accuracy": 0.794, "final_macro_f1": 0.756, "final_roc_auc": 0.83},
    ("high", "afl"): {"final_accuracy": 0.847, "final_macro_f1": 0.821, "final_roc_auc": 0.88},
}
PUBLISHED["iid", "fedavg-50"] |= {"rounds_to_target": 145, "gigabytes": 14.8}
PUBLISHED["iid", "afl"] |= {"rounds_to_target": 118, "gigabytes": 10.6}
PUBLISHED["high", "fedavg-50"]["rounds_to_own_peak"] = 210
PUBLISHED["high", "afl"]["rounds_to_own_peak"] = 162
"""The paper's numbers by skew and method: accuracies, convergence (table 3) and communication (table 4, of an unnamed
split: that of the equal mixes, since under skew FedAvg never gets to 90 %)."""
QUICK = {"methods": "fedavg-50,afl,centralised", "skews": "high", "clients": 10, "rounds": 6, "seeds": 2}


def world(dataset: str, rounds: int, model: str | None, clients: int) -> dict[str, Any]:
    """What all runs have in common, with the paper's local training as far as it tells it."""
    small = dataset in SMALL
    return {
        "rounds": rounds,
        # No deadline: a round ends with its last upload.
        "round": {"tmax_s": 86_400.0, "computes": "selected", "allocator": "equal_share", "admission": "count"},
        "devices": {"count": clients, "profile": "sample-phones"},
        "data": {"dataset": dataset},
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


def beside_the_paper(study: edgesim.StudyResult, reference: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The methods beside the paper's numbers; their differences from the ``reference``, all corrected together."""

    def measured(run: edgesim.Run) -> dict[str, float]:
        measures = published.measure(run, study.plan.target)
        return measures | {"gigabytes": (measures["bits_up"] + measures["bits_down"]) / 8e9}

    def of_the_paper(row: Mapping[str, Any]) -> Mapping[str, float]:
        return PUBLISHED.get((row["skew"], row["method"]), {})

    reached = ["not_reached", "rounds_to_target_bound"]
    means = published.beside(study.folder, [*MEASURES], of_the_paper, measured, reached)
    return means, published.differences(study.folder, "method", reference, [*MEASURES], measured)


def show_beside(means: pd.DataFrame, differences: pd.DataFrame, reference: str) -> None:
    """Print the tables of `beside_the_paper`."""
    note = "paper: data unnamed, so that only the order of its numbers can be compared."
    papers = means.filter(like="_paper").notna().any(axis=None)
    title = "Mean ± 95 % t interval over seeds"
    published.show(means, title, ["skew", "method"], MEASURES, note=note if papers else "")
    published.show_differences(differences, reference, MEASURES)


def draw(study: edgesim.StudyResult, reference: str, formats: figures.Formats) -> None:
    """Draw the paper's figures but for that of scaling."""
    album = figures.Album(study.folder / "plots", formats)
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


def scale(runs: Runs, common: dict[str, Any], devices: list[int]) -> None:
    """Time the rounds of FedAvg and AFL with more and more devices, one run at a time unless ``--jobs`` says else."""
    data = {"partition": "iid", "samples_per_device": SCALING_SAMPLES}
    for name, count in itertools.product(("fedavg-50", "afl"), devices):
        world = common | {"devices": common["devices"] | {"count": count}}
        runs.add(config(world, METHODS[name], data), labels={"method": name, "devices": count})
    runs.jobs = runs.jobs or 1
    study = runs.compare()
    tables.growth(study.folder)
    finished = [*study.runs.values()]
    figures.Album(study.folder / "plots", runs.formats).add(
        "scaling", lambda: figures.draw_scaling(finished, "method"), finished
    )


@scenario(quick=QUICK | {"out": "runs/afl-quick"})
def main(
    runs: Runs,
    methods: Annotated[str, Option(help=f"Methods to compare; also {', '.join(CONTROLS)}.")] = ",".join(METHODS),
    skews: Annotated[str, Option(help="Label skews: iid, moderate, high.")] = ",".join(SKEWS),
    clients: Annotated[int, Option(min=2, help="Number of devices.")] = 50,
    rounds: Annotated[int, Option(min=3, help="Rounds of each run (the paper: 100 to 300).")] = 100,
    target: Annotated[float, Option(help="Accuracy whose rounds are counted.")] = 0.9,
    dataset: Annotated[str, Option(help="Data set: a name, an .npz or a folder.")] = "digits",
    model: Annotated[str | None, Option(help="Model; afl-mlp on small sets, else afl-cnn.")] = None,
    controls: Annotated[bool, Option("--controls", help="Compare the parts of AFL instead.")] = False,
    scaling: Annotated[bool, Option("--scaling", help="Time rounds of more and more devices one by one.")] = False,
    scaling_devices: Annotated[str, Option(help="Numbers of devices of --scaling.")] = "10,50,100,200,500",
) -> None:
    """Compare AFL with FedAvg and centralised training."""
    if controls and scaling:
        raise edgesim.EdgesimError("--controls and --scaling are studies of their own; leave out one of them")
    runs.name_folder(f"afl-{Path(dataset).stem}{'-controls' * controls}{'-scaling' * scaling}")
    common = world(dataset, rounds, model, clients)
    if scaling:
        scale(runs, common, counts(scaling_devices))
        return
    chosen = list(CONTROLS) if controls else names(methods)
    refuse_unknown("--methods", chosen, METHODS | CONTROLS)
    refuse_unknown("--skews", names(skews), SKEWS)
    for skew, name in itertools.product(names(skews), chosen):
        labels = {"skew": skew, "method": name}
        runs.add(config(common, (METHODS | CONTROLS)[name], dealt(SKEWS[skew])), labels=labels)
    reference = "fedavg-35" if controls else "fedavg-50" if "fedavg-50" in chosen else chosen[0]
    study = runs.compare(target=target, against=[("method", reference)])
    means, differences = beside_the_paper(study, reference)
    tables.save(means, study.folder / "beside-the-paper.csv")
    tables.save(differences, study.folder / "beside-the-paper-differences.csv")
    show_beside(means, differences, reference)
    draw(study, reference, runs.formats)


if __name__ == "__main__":
    start(main)
