"""What does each averaging algorithm lose when devices come and go?

The setting of the DPFL benchmark (NYCU-PAIR-Labs) on digits: ten devices, of which every available one trains in every
round, once with equal mixes of classes and always there, once with heavy label skew (Dirichlet, alpha 0.1) always
there, and once with that skew under Markovian participation (join and leave with probability 0.2, a round that nobody
would attend gets one device). Tells WE, IDP and ID of each algorithm, and their paired differences to FedAvg. The
benchmark's digits leave 1,237 images of the training set beside a public part; here 1,240 of the whole set are dealt.

Options are published defaults but for FedDyn's alpha and MOON's mu. ``--tune`` shows how they were chosen: every value
in `TRIED`, on seeds of its own.
"""

import itertools
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from edgesim.analysis.participation import course, instability, windowed
from edgesim.analysis.runs import read_study
from edgesim.arrays import Floats
from edgesim.errors import EdgesimError
from edgesim.scenario import Fresh, conclude, names, plain_errors, quick_option, start
from edgesim.study import PlannedRun, Study, grid, run_study

OPTIONS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "fedprox": {"mu": 0.01},
    "scaffold": {},
    "feddyn": {"alpha": 0.1},
    "mifa": {},
    "fedavgm": {"beta": 0.9, "lr": 1.0},
    "fedadam": {"lr": 0.1},
    "fedyogi": {"lr": 0.1},
    "moon": {"mu": 0.1},
}
TRIED: dict[str, list[dict[str, Any]]] = {
    "fedavg": [{}],
    "fedprox": [{"mu": mu} for mu in (0.001, 0.01, 0.1)],
    "scaffold": [{"option": option} for option in ("I", "II")],
    "feddyn": [{"alpha": alpha} for alpha in (0.01, 0.1, 0.3)],
    "mifa": [{"wait": wait} for wait in (False, True)],
    "fedavgm": [{"beta": beta, "lr": lr} for beta, lr in ((0.5, 1.0), (0.9, 0.3), (0.9, 1.0))],
    "fedadam": [{"lr": lr} for lr in (0.03, 0.1, 0.3)],
    "fedyogi": [{"lr": lr} for lr in (0.03, 0.1, 0.3)],
    "moon": [{"mu": mu} for mu in (0.1, 1.0, 5.0)],
}
"""Options that ``--tune`` compares, published defaults among them.

Over three seeds those in `OPTIONS` had the highest WE in ``skewed-markov``, but for two that were less than 0.1 points
below it, far within chance: FedProx's published mu (89.44 %; 89.52 with 0.001) and FedDyn's alpha (95.63 %; 95.67 with
0.3, whose WE in ``iid-static`` is the lower one). MOON's 0.1 is the least that was tried.
"""
FIRST_TUNING_SEED = 1000
SKEWED = {"data": {"partition": "dirichlet", "partition_options": {"alpha": 0.1}}}
MARKOV = {"model": "markov", "join_probability": 0.2, "leave_probability": 0.2, "slots": "rounds", "if_empty": "force"}
SETTINGS: dict[str, dict[str, Any]] = {
    "iid-static": {"data": {"partition": "iid"}},
    "skewed-static": SKEWED,
    "skewed-markov": SKEWED | {"availability": MARKOV},
}

NEAR_POINTS = 3.0
PROTOTYPE = {"skewed-static": (94.35, 87.56, 0.27), "skewed-markov": (91.35, 77.84, 1.72)}
"""WE in %, mean accuracy over rounds in % and ID in points of a prototype of FedAvg: 1,237 images, three seeds."""
QUICK = quick_option(algorithms="fedavg,mifa", rounds=6, seeds=1, out="runs/dynamic-participation-quick")


def planned(
    setting: str, algorithm: str, options: dict[str, Any], rounds: int, seeds: range, **labels: str
) -> list[PlannedRun]:
    """The runs of one algorithm in one setting; ``labels`` are further knobs."""
    own = SETTINGS[setting]
    base = own | {
        "rounds": rounds,
        "devices": {"count": 10},
        "round": {
            "tmax_s": 60.0,
            "computes": "selected",
            "allocator": "equal_share",
            "admission": "count",
            "count": 10,
            "close": "deadline",
        },
        "data": {"dataset": "digits", "samples_per_device": 124} | own["data"],
        "learning": {
            "model": "mlp",
            "pretrain": False,
            "lr": 0.1,
            "lr_decay": 1.0,
            "momentum": 0.5,
            "batch_size": 32,
            "epochs": 5,
        },
        "algorithm": {"name": algorithm} | options,
    }
    return grid(base, {}, seeds, labels={"setting": setting, "algorithm": algorithm} | labels)


def courses(out: Path, setting: str, algorithm: str) -> list[Floats]:
    """Accuracies in % after each round, of each seed."""
    knobs = {"setting": setting, "algorithm": algorithm}
    return [course(run) for run in read_study(out).finished if run.knobs == knobs]


def within_reach(out: Path, algorithms: list[str]) -> list[str]:
    """How far WE of the other algorithms is from the first one's where data are alike and nobody is away."""
    we = {name: [windowed(psi).mean[-1] for psi in courses(out, "iid-static", name)] for name in algorithms}
    reference = we.pop(algorithms[0])
    away = {name: np.mean(of) - np.mean(reference) for name, of in we.items() if of and reference}
    if not away:
        return []
    told = ", ".join(f"{name} {points:+.2f}" for name, points in away.items())
    far = [name for name, points in away.items() if abs(points) > NEAR_POINTS]
    judged = f"not within {NEAR_POINTS:g} points: {', '.join(far)}" if far else f"all within {NEAR_POINTS:g} points"
    return [f"iid-static, WE less that of {algorithms[0]}, in points: {told}; {judged}."]


def beside_the_prototype(out: Path) -> list[str]:
    """FedAvg's WE, mean over rounds and ID, where the prototype was run too."""
    texts = []
    for setting, theirs in PROTOTYPE.items():
        if found := courses(out, setting, "fedavg"):
            ours = np.mean([(windowed(psi).mean[-1], psi.mean(), instability(psi)) for psi in found], axis=0)
            told, known = (" / ".join(f"{value:.2f}" for value in values) for values in (ours, theirs))
            texts.append(f"fedavg, {setting}: WE / mean over rounds / ID {told}; prototype, 60 rounds: {known}.")
    return texts


@plain_errors
def main(
    algorithms: Annotated[str, typer.Option(help="Algorithms to compare, with the reference first.")] = ",".join(
        OPTIONS
    ),
    settings: Annotated[str, typer.Option(help="Settings to compare them in.")] = ",".join(SETTINGS),
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    rounds: Annotated[int, typer.Option(min=6, help="Rounds of each run.")] = 60,
    tune: Annotated[bool, typer.Option("--tune", help="Compare options of each algorithm instead.")] = False,
    quick: Annotated[bool, QUICK] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")] = None,
    fresh: Fresh = False,
    out: Annotated[Path, typer.Option(help="Study folder.")] = Path("runs/dynamic-participation"),
) -> None:
    """Compare what averaging algorithms lose under dynamic participation."""
    for known, text, option in ((SETTINGS, settings, "settings"), (OPTIONS, algorithms, "algorithms")):
        for name in names(text):
            if name not in known:
                raise EdgesimError(f"--{option}: unknown {name!r}; known: {', '.join(known)}")
    runs = []
    for setting, name in itertools.product(names(settings), names(algorithms)):
        if tune:
            for options in TRIED[name]:
                told = " ".join(f"{key}={value}" for key, value in options.items())
                own_seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + seeds)
                runs += planned(setting, name, options, rounds, own_seeds, tried=told or "no options")
        else:
            runs += planned(setting, name, OPTIONS[name], rounds, range(seeds))
    run_study(Study(out.name, runs), out, jobs, fresh=fresh)
    if tune:
        conclude(out)
    else:
        reference, *_ = names(algorithms)
        answers = within_reach(out, names(algorithms)) + beside_the_prototype(out)
        conclude(out, [("algorithm", reference)], answers)


if __name__ == "__main__":
    start(main)
