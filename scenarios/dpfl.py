"""What does each algorithm lose when devices come and go? The DPFL benchmark, beside the tables of its paper.

In the benchmark (NYCU-PAIR-Labs) every client that is there trains in every round: always (``static``), with
probability 1/2 a round (``random``), joining and leaving with probability 0.2 (``markov``), by a matrix of zeros and
ones (``programmed``), or one after another (``arrival``, ``departure``, ``round-robin``). A round that nobody would
attend gets one client. The classes are divided by Dirichlet(100) (``iid``), Dirichlet(1) (``light``), Dirichlet(0.1)
(``heavy``) or Dirichlet of a number. Tells WE, IDP and ID of each algorithm, their paired differences from the first
algorithm's, and the paper's numbers, which have neither seeds nor intervals.

The paper's images, Office-Caltech-10, are for the user to bring (``--dataset office-caltech --folder FOLDER --model
resnet10-bn``). Digits with an MLP, and 200 images of each class of CIFAR-10 or Fashion-MNIST with a small CNN, stand in
for them. Public images are carved out of the training set before it is divided, for all algorithms alike; the paper's
come from elsewhere. FedMD and FedProto average weights, as in the benchmark. Its program never applies the corrections
of SCAFFOLD, CFeD and FedCL, so that its columns of SCAFFOLD and CFeD are further runs of FedAvg; here all three act.

With ``--kpfl`` each algorithm whose server averages models runs with KPFL around it as well: the paper's plug-in, by
its default options or, with ``--settings paper``, by those that the paper tuned for the algorithm and law.

Options are published defaults, on digits with those of `ON_DIGITS`. ``--tune`` shows how these were chosen: every
value in `TRIED`, on seeds of its own.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from typer import Option

import edgesim
from edgesim.scenario import Runs, conclude, counts, known, names, published, refuse_unknown, scenario, start, tables

OPTIONS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "fedprox": {"mu": 0.01},
    "scaffold": {},
    "feddyn": {"alpha": 0.01},
    "mifa": {},
    "fedavgm": {"beta": 0.9, "lr": 1.0},
    "fedadam": {"lr": 0.1},
    "fedyogi": {"lr": 0.1},
    "moon": {"mu": 5.0},
    "fedproto": {"average_weights": True},
    "fpl": {},
    "fedmd": {"average_weights": True},
    "feddf": {},
    "fedgen": {},
    "flwf": {},
    "cfed": {},
    "fedcl": {},
    "fedmd-own": {"name": "fedmd"},
    "fedproto-own": {"name": "fedproto"},
    "alone": {"name": "fedproto", "strength": 0.0},
}
"""Published defaults; where a paper has several, one of them.

The last three have a model of its own on each device and are compared on request; ``alone`` learns from no other.
"""
OWN_MODELS = ("fedmd-own", "fedproto-own", "alone")
ON_DIGITS: dict[str, dict[str, Any]] = {
    "feddyn": {"alpha": 0.3},
    "fedavgm": {"beta": 0.5, "lr": 1.0},
    "fedadam": {"lr": 0.03},
    "fedyogi": {"lr": 0.03},
    "fpl": {"tau": 0.1},
    "fedgen": {"a_0": 1.0},
    "flwf": {"alpha": 0.1},
    "cfed": {"strength": 2.5},
}
"""What had the highest WE under Markov participation with heavy skew, over three seeds of ``--tune``; of the others no
option was ahead of the default by 0.1 points. Some are the least or the largest that was tried. With FedGen's default,
10, no run learned."""
TRIED: dict[str, list[dict[str, Any]]] = {
    "fedprox": [{"mu": mu} for mu in (0.001, 0.01, 0.1)],
    "scaffold": [{"option": option} for option in ("I", "II")],
    "feddyn": [{"alpha": alpha} for alpha in (0.01, 0.1, 0.3)],
    "mifa": [{"wait": wait} for wait in (False, True)],
    "fedavgm": [{"beta": beta, "lr": lr} for beta, lr in ((0.5, 1.0), (0.9, 0.3), (0.9, 1.0))],
    "fedadam": [{"lr": lr} for lr in (0.03, 0.1, 0.3)],
    "fedyogi": [{"lr": lr} for lr in (0.03, 0.1, 0.3)],
    "moon": [{"mu": mu} for mu in (0.01, 0.03, 0.1, 1.0, 5.0)],
    "fedproto": [{"strength": strength} for strength in (0.1, 1.0, 10.0)],
    "fpl": [{"tau": tau} for tau in (0.02, 0.1, 0.5, 3.76)],
    "fedmd": [{"digest_epochs": epochs} for epochs in (1, 2, 5)],
    "feddf": [{"steps": steps, "lr": lr} for steps, lr in ((200, 1e-3), (200, 1e-4), (50, 1e-3))],
    "fedgen": [{"a_0": strength} for strength in (0.1, 1.0, 10.0)],
    "flwf": [{"alpha": alpha} for alpha in (0.1, 1.0, 5.0)],
    "cfed": [{"strength": strength} for strength in (0.1, 1.0, 2.5)],
    "fedcl": [{"coe": coe} for coe in (0.5, 1.5, 12.5)],
}
"""Options that ``--tune`` compares with one another, the published default among them."""
FIRST_TUNING_SEED = 1000
WHOLE = ("digits", "office-caltech")
"""Data sets of which all images are used; of others 200 of each class."""
SKEWS = {"iid": 100.0, "light": 1.0, "heavy": 0.1}
DIGITS = {"model": "mlp", "lr": 0.1, "momentum": 0.5, "batch_size": 32}
PAPERS = {"model": "small-cnn", "lr": 0.01, "momentum": 0.9, "weight_decay": 1e-5, "batch_size": 128, "clip_norm": 10.0}
"""The paper's local training, but for its ResNet-10, which is ``resnet10-bn`` here."""

NEAR_POINTS = 3.0
PROTOTYPE_ROUNDS = 60
PROTOTYPE = {"static": (94.35, 87.56, 0.27), "random": (92.98, 83.45, 1.53), "markov": (91.35, 77.84, 1.72)}
"""WE in %, mean accuracy over rounds in % and ID in points, by the law of participation: a prototype of FedAvg on the
same division of digits into public and private images, with heavy skew, three seeds."""
Participation = Annotated[
    str, Option(help="Laws: static, random, markov, programmed, arrival, departure, round-robin.")
]
Alpha = Annotated[str, Option(help="Label skew: iid, light, heavy or a Dirichlet parameter.")]
Clients = Annotated[str, Option(help="Number of clients; several to compare (the paper: 10,20,50).")]
Rounds = Annotated[int, Option(min=6, help="Rounds of each run.")]
DatasetName = Annotated[str, Option(help="Data set: a name, an .npz or a folder.")]
Model = Annotated[str | None, Option(help="Model; mlp on digits, else small-cnn.")]
Settings = Annotated[str, Option(help="KPFL's options: default, or those that its paper tuned (paper).")]
"""Options of this scenario that `kpfl_ablation.py` has too."""
PAPERS_LAWS = ("static", "random", "markov")
BY_DEFAULT = ",".join(PAPERS_LAWS)
"""Laws that are compared unless others are named."""
PAPERS_SKEW = "heavy"
MEASURES = {
    "we_percent": ("WE (%)", "{:.2f}"),
    "idp_points": ("IDP (points)", "{:+.2f}"),
    "id_points": ("ID (points)", "{:.2f}"),
}
"""Heading and format of what the paper's tables have."""
NONE = float("nan")
PUBLISHED: dict[tuple[str, str, int], dict[str, tuple[float, float, float]]] = {
    key: {"we_percent": we, "id_points": ids, "idp_points": (NONE, *idp)}
    for key, we, ids, idp in [
        (("fedavg", "own", 10), (63.02, 46.01, 50.92), (0.49, 1.58, 1.11), (20.87, 19.12)),
        (("fedprox", "own", 10), (64.99, 47.83, 53.30), (0.46, 1.74, 1.22), (20.57, 18.25)),
        (("scaffold", "own", 10), (63.20, 50.03, 51.32), (0.38, 1.44, 1.19), (17.82, 15.80)),
        (("fedmd", "own", 10), (52.75, 34.50, 33.59), (0.54, 1.24, 1.02), (15.80, 17.19)),
        (("fedgen", "own", 10), (73.23, 56.05, 54.75), (0.29, 1.72, 1.24), (20.65, 21.95)),
        (("moon", "own", 10), (63.07, 46.40, 52.44), (0.52, 1.72, 1.31), (21.06, 19.11)),
        (("fpl", "own", 10), (58.19, 46.15, 51.28), (0.69, 1.52, 1.03), (17.95, 15.72)),
        (("flwf", "own", 10), (65.33, 46.34, 53.22), (0.43, 1.68, 1.18), (21.19, 19.02)),
        (("cfed", "own", 10), (57.98, 51.74, 53.05), (0.29, 1.49, 1.10), (11.40, 11.62)),
        (("fedavg", "kpfl", 10), (66.79, 60.57, 58.10), (NONE, 0.52, 0.50), (4.78, 8.17)),
        (("fedprox", "kpfl", 10), (66.06, 62.49, 59.88), (NONE, 0.43, 0.45), (4.34, 6.82)),
        (("scaffold", "kpfl", 10), (66.75, 61.75, 57.79), (NONE, 0.48, 0.52), (5.02, 8.63)),
        (("fedmd", "kpfl", 10), (53.51, 49.04, 44.15), (NONE, 0.47, 0.36), (1.13, 5.39)),
        (("fedgen", "kpfl", 10), (72.17, 65.00, 62.66), (NONE, 0.45, 0.47), (9.86, 11.18)),
        (("moon", "kpfl", 10), (65.59, 61.31, 60.50), (NONE, 0.36, 0.41), (5.35, 7.91)),
        (("fpl", "kpfl", 10), (58.70, 54.06, 53.26), (NONE, 0.48, 0.51), (5.31, 6.30)),
        (("flwf", "kpfl", 10), (65.93, 59.85, 59.05), (NONE, 0.36, 0.40), (6.29, 8.03)),
        (("cfed", "kpfl", 10), (65.46, 63.12, 58.25), (NONE, 0.47, 0.47), (4.38, 8.80)),
        (("fedprox", "own", 20), (59.48, 51.50, 45.50), (NONE, 1.15, 1.48), (13.64, 11.63)),
        (("fedprox", "own", 50), (51.41, 45.20, 41.50), (NONE, 1.12, 0.99), (9.17, 8.93)),
        (("fedprox", "kpfl", 20), (60.58, 57.41, 54.13), (NONE, 0.39, 0.49), (4.23, 9.20)),
        (("fedprox", "kpfl", 50), (53.01, 50.30, 48.26), (NONE, 0.29, 0.42), (3.59, 7.31)),
        (("fedprox", "mifa", 10), (64.04, 60.55, 61.03), (NONE, 0.46, 0.40), (NONE, NONE)),
        (("fedprox", "kpfl-first", 10), (65.79, 60.28, 57.89), (NONE, 0.42, 0.38), (NONE, NONE)),
        (("moon", "mifa", 10), (63.57, 59.15, 59.71), (NONE, 0.51, 0.42), (NONE, NONE)),
        (("moon", "kpfl-first", 10), (65.29, 60.98, 57.55), (NONE, 0.47, 0.46), (NONE, NONE)),
    ]
}
"""Tables 1 (10 clients), 2 and 3, by algorithm, server (``own``, ``mifa``, ``kpfl`` or, without distillation,
``kpfl-first``) and number of clients: percent and points under `PAPERS_LAWS`. The static IDP is none: nothing is lost
against itself."""
QUICK = {"participation": "static,markov", "rounds": 6, "seeds": 1}


@dataclass(frozen=True)
class World:
    """What all runs of a study have in common."""

    dataset: str
    rounds: int
    model: str | None
    """Instead of the data set's own."""
    matrix: Path | None
    """Of ``programmed`` participation."""

    def base(self, law: str, alpha: float, clients: int) -> dict[str, Any]:
        """Config of the runs under one law of participation, less the algorithm; raises `EdgesimError`."""
        digits = self.dataset == "digits"
        learning = (DIGITS if digits else PAPERS) | {"epochs": 5, "lr_decay": 1.0, "pretrain": False}
        grey = digits or self.dataset == "fashion-mnist"
        return {
            "rounds": self.rounds,
            "devices": {"count": clients},
            "round": {
                "tmax_s": 60.0,
                "computes": "selected",
                "allocator": "equal_share",
                "close": "deadline",
                "admission": "count",
                "count": clients,
            },
            "availability": self._availability(law, clients),
            "data": {
                "dataset": self.dataset,
                "public": "carved",
                "small": self.dataset not in WHOLE,
                "augment": "none" if grey else "crop-flip",
                "partition": "dirichlet",
                "partition_options": {"alpha": alpha},
            },
            "learning": learning | ({"model": self.model} if self.model else {}),
        }

    def _availability(self, law: str, clients: int) -> dict[str, Any]:
        """The benchmark's values of a law; those that it has only for ten clients grow with their number."""
        by_rounds = {"slots": "rounds", "if_empty": "force"}
        if law == "programmed" and self.matrix is None:
            raise edgesim.EdgesimError(
                "--participation programmed needs --matrix, a CSV or Parquet file of zeros and ones"
            )
        half = max(1, clients // 2)
        laws: dict[str, dict[str, Any]] = {
            "static": {"model": "always"},
            "random": {"model": "bernoulli", "probability": 0.5, **by_rounds},
            "markov": {"model": "markov", "join_probability": 0.2, "leave_probability": 0.2, **by_rounds},
            "programmed": {"model": "table", "file": str(self.matrix), **by_rounds},
            "arrival": {
                "model": "arrival",
                "at_start": half,
                "join_after_rounds": 50,
                "join_every_rounds": 10,
                "join_at_once": max(1, clients // 10),
            },
            "departure": {
                "model": "arrival",
                "at_start": clients,
                "leave_after_rounds": 50,
                "leave_every_rounds": 10,
                "leave_at_once": max(1, clients // 10),
                "leave_first": "highest",
                "if_empty": "force",
            },
            "round-robin": {"model": "round_robin", "at_once": 3, "overlap_devices": 1, "turn_rounds": 10},
        }
        refuse_unknown("--participation", [law], laws)
        return laws[law]

    def options(self, algorithm: str) -> dict[str, Any]:
        """The options of an algorithm, chosen on digits or published; raises `EdgesimError` for an unknown one."""
        refuse_unknown("--algorithms", [algorithm], OPTIONS)
        return OPTIONS[algorithm] | (ON_DIGITS.get(algorithm, {}) if self.dataset == "digits" else {})


def kpfl_options(settings: str) -> dict[str, Any]:
    """KPFL's options under the option ``--settings``; raises `EdgesimError`."""
    refuse_unknown("--settings", [settings], ("default", "paper"))
    return {} if settings == "default" else {"settings": settings}


def has_kpfl(name: str) -> bool:
    """Whether KPFL may be around an algorithm of `OPTIONS`."""
    return known.merges_a_mean(OPTIONS[name].get("name", name)) and name not in OWN_MODELS


def skew_of(text: str) -> tuple[str, float]:
    """Name and Dirichlet parameter of a label skew; a number that has a name gets it."""
    try:
        value = SKEWS[text] if text in SKEWS else float(text)
    except ValueError:
        raise edgesim.EdgesimError(f"--alpha: expected {', '.join(SKEWS)} or a number (got {text!r})") from None
    return next((name for name, parameter in SKEWS.items() if parameter == value), f"{value:g}"), value


def courses(study: edgesim.StudyResult, **knobs: object) -> list[NDArray[np.float64]]:
    """Accuracies in % after each round, of each finished run with these knobs and without KPFL."""
    own = [run for run in study.runs.values() if run.knobs.get("server", "own") == "own"]
    return [tables.course(run) for run in own if knobs.items() <= run.knobs.items()]


def within_reach(study: edgesim.StudyResult, algorithms: list[str]) -> list[str]:
    """How far WE of the other algorithms is from the first one's where data are alike and nobody is away."""
    by_algorithm = {name: courses(study, algorithm=name, participation="static", skew="iid") for name in algorithms}
    we = {name: np.mean([tables.windowed(psi).mean[-1] for psi in of]) for name, of in by_algorithm.items() if of}
    if algorithms[0] not in we or len(we) < 2:
        return []
    away = {name: float(value - we[algorithms[0]]) for name, value in we.items() if name != algorithms[0]}
    differences = ", ".join(f"{name} {points:+.2f}" for name, points in away.items())
    far = [name for name, points in away.items() if abs(points) > NEAR_POINTS]
    judged = f"not within {NEAR_POINTS:g} points: {', '.join(far)}" if far else f"all within {NEAR_POINTS:g} points"
    return [f"Equal mixes, nobody away: WE less that of {algorithms[0]}, in points: {differences}; {judged}."]


def beside_the_prototype(study: edgesim.StudyResult) -> list[str]:
    """FedAvg's WE, mean over rounds and ID, where the prototype was run too."""
    texts = []
    for law, theirs in PROTOTYPE.items():
        accuracies = courses(study, algorithm="fedavg", participation=law, skew="heavy", clients=10)
        accuracies = [psi[:PROTOTYPE_ROUNDS] for psi in accuracies if len(psi) >= PROTOTYPE_ROUNDS]
        if accuracies:
            ours = np.mean(
                [(tables.windowed(psi).mean[-1], psi.mean(), tables.instability(psi)) for psi in accuracies], axis=0
            )
            ours_, theirs_ = (" / ".join(f"{value:.2f}" for value in values) for values in (ours, theirs))
            texts.append(
                f"fedavg, {law}, {PROTOTYPE_ROUNDS} rounds: WE / mean over rounds / ID {ours_}; prototype {theirs_}."
            )
    return texts


def beside_the_papers(folder: Path) -> pd.DataFrame:
    """WE, IDP and ID of a study beside the paper's."""

    def of_the_paper(row: Mapping[str, Any]) -> dict[str, float]:
        numbers = PUBLISHED.get((row["algorithm"], row.get("server", "own"), int(row["clients"])), {})
        if row["skew"] != PAPERS_SKEW or row["participation"] not in PAPERS_LAWS:
            return {}
        return {name: of[PAPERS_LAWS.index(row["participation"])] for name, of in numbers.items()}

    return published.beside(folder, ("we_percent", "id_points", "idp_points"), of_the_paper)


def report_beside(folder: Path) -> None:
    """Write and print a study beside the tables of the paper, in sections of equal participation."""
    table = beside_the_papers(folder)
    tables.save(table, folder / "beside-the-paper.csv")
    same, knobs = published.shown_knobs(table, "algorithm")
    paper = (
        "paper: Office-Caltech-10, ResNet-10, 100 rounds (static, random, markov: static, timed-random and Markov "
        "participation in tables 1 to 3); ±: 95 % t interval over seeds."
    )
    note = paper if table.filter(like="_paper").notna().any(axis=None) else ""
    published.show(table, f"Under dynamic participation ({same})", knobs, MEASURES, knobs[:-1], note)


@scenario(quick={"algorithms": "fedavg,mifa", **QUICK, "out": "runs/dpfl-quick"})
def main(
    runs: Runs,
    algorithms: Annotated[
        str, Option(help=f"Algorithms to compare, with the reference first; also {', '.join(OWN_MODELS)}.")
    ] = ",".join(name for name in OPTIONS if name not in OWN_MODELS),
    participation: Participation = BY_DEFAULT,
    alpha: Alpha = "heavy",
    clients: Clients = "10",
    rounds: Rounds = 100,
    dataset: DatasetName = "digits",
    model: Model = None,
    matrix: Annotated[
        Path | None, Option(help="CSV or Parquet for programmed: a row per client; columns device, 1, 2, ...")
    ] = None,
    kpfl: Annotated[bool, Option("--kpfl", help="Run algorithms with KPFL around them, too.")] = False,
    settings: Settings = "default",
    tune: Annotated[bool, Option("--tune", help="Compare options of each algorithm instead.")] = False,
) -> None:
    """Compare what algorithms lose under dynamic participation."""
    runs.name_folder(f"dpfl-{Path(dataset).stem}")
    world = World(dataset, rounds, model, matrix)
    skew, parameter = skew_of(alpha)
    if matrix is not None and "programmed" not in names(participation):
        raise edgesim.EdgesimError("--matrix is for --participation programmed, which is not among the laws; remove it")
    if kpfl and tune:
        raise edgesim.EdgesimError("--tune compares options of algorithms without --kpfl; leave out one of them")
    if settings != "default" and not kpfl:
        raise edgesim.EdgesimError("--settings is for --kpfl; add it or leave out --settings")
    first = FIRST_TUNING_SEED if tune else 0
    for count, law, name in itertools.product(counts(clients), names(participation), names(algorithms)):
        base, options = world.base(law, parameter, count), {"name": name} | world.options(name)
        labels = {"algorithm": name, "participation": law, "skew": skew, "clients": count}
        for tried in TRIED.get(name, [{}]) if tune else [{}]:
            further = {"tried": " ".join(f"{key}={value}" for key, value in tried.items()) or "none"} if tune else {}
            further |= {"server": "own"} if kpfl else {}
            seeds = range(first, first + runs.seeds)
            runs.add(base | {"algorithm": options | tried}, labels=labels | further, seeds=seeds)
        if kpfl and has_kpfl(name):
            own = base | {"algorithm": options | {"kpfl": kpfl_options(settings)}}
            runs.add(own, labels=labels | {"server": "kpfl"})
    if tune:
        runs.compare()
        return
    study, compared = runs.study(), names(algorithms)
    answers = within_reach(study, compared) + (beside_the_prototype(study) if dataset == "digits" else [])
    conclude(study.folder, [("server", "own")] if kpfl else [("algorithm", compared[0])], answers, runs.formats)
    report_beside(study.folder)


if __name__ == "__main__":
    start(main)
