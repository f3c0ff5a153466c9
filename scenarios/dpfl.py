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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

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
    known,
    names,
    plain_errors,
    quick_option,
    start,
    tables,
)

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
    str, typer.Option(help="Laws: static, random, markov, programmed, arrival, departure, round-robin.")
]
Alpha = Annotated[str, typer.Option(help="Label skew: iid, light, heavy or a Dirichlet parameter.")]
Clients = Annotated[str, typer.Option(help="Number of clients; several to compare (the paper: 10,20,50).")]
Rounds = Annotated[int, typer.Option(min=6, help="Rounds of each run.")]
DatasetName = Annotated[str, typer.Option(help="Data set: a name, an .npz or a folder.")]
Model = Annotated[str | None, typer.Option(help="Model; mlp on digits, else small-cnn.")]
Settings = Annotated[str, typer.Option(help="KPFL's options: default, or those that its paper tuned (paper).")]
"""Options of this scenario that `kpfl_ablation.py` has too."""
BY_DEFAULT = ",".join(known.DPFL_LAWS)
"""Laws that are compared unless others are named."""
QUICK = quick_option(algorithms="fedavg,mifa", participation="static,markov", rounds=6, seeds=1, out="runs/dpfl-quick")


@dataclass(frozen=True)
class Comparison:
    """What all runs of a study have in common."""

    dataset: str
    folder: Path
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
                "admission": "count",
                "count": clients,
                "close": "deadline",
            },
            "availability": self._availability(law, clients),
            "data": {
                "dataset": self.dataset,
                "folder": str(self.folder),
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


def refuse_unknown(option: str, given: Iterable[str], among: Iterable[str]) -> None:
    """Raise `EdgesimError` for the first of the values ``given`` to an option that is not ``among`` those known."""
    listed = list(among)
    for name in given:
        if name not in listed:
            raise edgesim.EdgesimError(f"{option}: unknown {name!r}; known: {', '.join(listed)}")


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


def courses(out: Path, **knobs: object) -> list[NDArray[np.float64]]:
    """Accuracies in % after each round, of each finished run with these knobs and without KPFL."""
    found = [run for run in edgesim.StudyResult(out).runs.values() if run.knobs.get("server", "own") == "own"]
    return [tables.course(run) for run in found if knobs.items() <= run.knobs.items()]


def within_reach(out: Path, algorithms: list[str]) -> list[str]:
    """How far WE of the other algorithms is from the first one's where data are alike and nobody is away."""
    found = {name: courses(out, algorithm=name, participation="static", skew="iid") for name in algorithms}
    we = {name: np.mean([tables.windowed(psi).mean[-1] for psi in of]) for name, of in found.items() if of}
    if algorithms[0] not in we or len(we) < 2:
        return []
    away = {name: float(value - we[algorithms[0]]) for name, value in we.items() if name != algorithms[0]}
    told = ", ".join(f"{name} {points:+.2f}" for name, points in away.items())
    far = [name for name, points in away.items() if abs(points) > NEAR_POINTS]
    judged = f"not within {NEAR_POINTS:g} points: {', '.join(far)}" if far else f"all within {NEAR_POINTS:g} points"
    return [f"Equal mixes, nobody away: WE less that of {algorithms[0]}, in points: {told}; {judged}."]


def beside_the_prototype(out: Path) -> list[str]:
    """FedAvg's WE, mean over rounds and ID, where the prototype was run too."""
    texts = []
    for law, theirs in PROTOTYPE.items():
        found = courses(out, algorithm="fedavg", participation=law, skew="heavy", clients=10)
        found = [psi[:PROTOTYPE_ROUNDS] for psi in found if len(psi) >= PROTOTYPE_ROUNDS]
        if found:
            ours = np.mean(
                [(tables.windowed(psi).mean[-1], psi.mean(), tables.instability(psi)) for psi in found], axis=0
            )
            told, theirs_told = (" / ".join(f"{value:.2f}" for value in values) for values in (ours, theirs))
            texts.append(
                f"fedavg, {law}, {PROTOTYPE_ROUNDS} rounds: WE / mean over rounds / ID {told}; prototype {theirs_told}."
            )
    return texts


@plain_errors
def main(
    algorithms: Annotated[
        str, typer.Option(help=f"Algorithms to compare, with the reference first; also {', '.join(OWN_MODELS)}.")
    ] = ",".join(name for name in OPTIONS if name not in OWN_MODELS),
    participation: Participation = BY_DEFAULT,
    alpha: Alpha = "heavy",
    clients: Clients = "10",
    seeds: Seeds = 5,
    rounds: Rounds = 100,
    dataset: DatasetName = "digits",
    folder: Folder = Path("data"),
    model: Model = None,
    matrix: Annotated[
        Path | None, typer.Option(help="CSV or Parquet for programmed: a row per client; columns device, 1, 2, ...")
    ] = None,
    kpfl: Annotated[bool, typer.Option("--kpfl", help="Run algorithms with KPFL around them, too.")] = False,
    settings: Settings = "default",
    tune: Annotated[bool, typer.Option("--tune", help="Compare options of each algorithm instead.")] = False,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: OutOrNone = None,
) -> None:
    """Compare what algorithms lose under dynamic participation."""
    out = out or Path("runs") / f"dpfl-{Path(dataset).stem}"
    comparison = Comparison(dataset, folder, rounds, model, matrix)
    skew, parameter = skew_of(alpha)
    if matrix is not None and "programmed" not in names(participation):
        raise edgesim.EdgesimError("--matrix is for --participation programmed, which is not among the laws; remove it")
    runs: list[edgesim.PlannedRun] = []
    if kpfl and tune:
        raise edgesim.EdgesimError("--tune compares options of algorithms without --kpfl; leave out one of them")
    if settings != "default" and not kpfl:
        raise edgesim.EdgesimError("--settings is for --kpfl; add it or leave out --settings")
    for count, law, name in itertools.product(counts(clients), names(participation), names(algorithms)):
        base, options = comparison.base(law, parameter, count), comparison.options(name)
        labels = {"algorithm": name, "participation": law, "skew": skew, "clients": count}
        for tried in TRIED.get(name, [{}]) if tune else [{}]:
            own = base | {"algorithm": {"name": name} | options | tried}
            told = {"tried": " ".join(f"{key}={value}" for key, value in tried.items()) or "none"} if tune else {}
            first = FIRST_TUNING_SEED if tune else 0
            told |= {"server": "own"} if kpfl else {}
            runs += edgesim.grid(own, {}, range(first, first + seeds), set_, labels=labels | told)
        if kpfl and has_kpfl(name):
            own = base | {"algorithm": {"name": name} | options | {"kpfl": kpfl_options(settings)}}
            runs += edgesim.grid(own, {}, range(seeds), set_, labels=labels | {"server": "kpfl"})
    edgesim.study(runs, out=out, jobs=jobs, fresh=fresh)
    if tune:
        conclude(out)
        return
    answers = within_reach(out, names(algorithms)) + (beside_the_prototype(out) if dataset == "digits" else [])
    conclude(out, [("server", "own")] if kpfl else [("algorithm", names(algorithms)[0])], answers)
    tables.beside_dpfl(out)


if __name__ == "__main__":
    start(main)
