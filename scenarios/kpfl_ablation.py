"""What of KPFL helps when devices come and go? Table 3 of its paper, and what its weights by age are worth.

Around FedProx and MOON: the algorithm alone (``own``), with MIFA's server (where that goes with an algorithm's local
half), with KPFL's pool alone (``kpfl-first``: what all devices sent last, averaged by data and age), and with the
distillation that follows (``kpfl``). Clients are there always, in half of the rounds, or join and leave, as in
`dpfl.py`, whose data and local training these are.

With ``--ages`` KPFL also runs with other exponents of its weights by age: 0, those that the paper tuned for the
algorithm and law, where it did (``kpfl-ages-paper``), and those of `ON_DIGITS`. After normalisation such weights hold
about 1 / (N + 1) of what a model counts, and where nobody is ever away all ages are alike, so that little is to be
expected. ``--tune`` shows how those of `ON_DIGITS` were chosen, on seeds of their own. ``--settings paper`` runs the
rows of KPFL by all options that the paper tuned. MIFA's rate is the run's own, not the paper's, which falls.
"""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer
from dpfl import (
    BY_DEFAULT,
    FIRST_TUNING_SEED,
    OPTIONS,
    Alpha,
    Clients,
    Comparison,
    DatasetName,
    Model,
    Rounds,
    Settings,
    has_kpfl,
    kpfl_options,
    refuse_unknown,
    skew_of,
)

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

SERVERS: dict[str, dict[str, Any]] = {"kpfl-first": {"keep": "first"}, "kpfl": {}}
"""KPFL's options in the rows of table 3; beside them are those of an algorithm's own server and of MIFA's."""
EXPONENTS = ("age_active", "age_idle")
TRIED_ACTIVE, TRIED_IDLE = (0.0, 0.16), (-2.0, -0.5, -0.18, 0.0, 0.2, 0.5)
"""Exponents that ``--tune`` compares, each with each."""
ON_DIGITS = {"age_active": 0.0, "age_idle": -2.0}
"""What had the highest WE around FedProx under Markov participation with heavy skew, over 60 rounds and three seeds of
``--tune``: 89.2 % beside 88.5 % with the defaults and 88.3 % with the worst. Of ``age_idle`` the least was tried."""
QUICK = quick_option(bases="fedprox", participation="static,markov", rounds=6, seeds=1, out="runs/kpfl-quick")


@plain_errors
def main(
    bases: Annotated[str, typer.Option(help="Algorithms that KPFL is put around.")] = "fedprox,moon",
    participation: Annotated[
        str, typer.Option(help="Laws: static, random, markov, arrival, departure, round-robin.")
    ] = BY_DEFAULT,
    alpha: Alpha = "heavy",
    clients: Clients = "10",
    seeds: Seeds = 5,
    rounds: Rounds = 100,
    dataset: DatasetName = "digits",
    folder: Folder = Path("data"),
    model: Model = None,
    settings: Settings = "default",
    ages: Annotated[bool, typer.Option("--ages", help="KPFL with other exponents of its weights by age, too.")] = False,
    tune: Annotated[bool, typer.Option("--tune", help="Compare exponents instead.")] = False,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: OutOrNone = None,
) -> None:
    """Compare the parts of KPFL."""
    if ages and tune:
        raise edgesim.EdgesimError("--ages compares the exponents that --tune is to choose; leave out one of them")
    if tune and settings != "default":
        raise edgesim.EdgesimError("--tune compares exponents beside default options; leave out --settings")
    if "programmed" in names(participation):
        raise edgesim.EdgesimError(
            "--participation: 'programmed' is for dpfl.py alone, which takes its --matrix; remove it"
        )
    refuse_unknown("--bases", names(bases), filter(has_kpfl, OPTIONS))
    out = out or Path("runs") / f"kpfl-{Path(dataset).stem}"
    comparison = Comparison(dataset, folder, rounds, model, None)
    skew, parameter = skew_of(alpha)
    first = FIRST_TUNING_SEED if tune else 0
    runs: list[edgesim.PlannedRun] = []
    for count, law, name in itertools.product(counts(clients), names(participation), names(bases)):
        base = comparison.base(law, parameter, count)
        labels = {"algorithm": name, "participation": law, "skew": skew, "clients": count}
        presence = base["availability"]["model"]
        paper = known.kpfl_of_the_paper(name, dataset, presence) if ages else {}
        for server, (told, options) in (_tried() if tune else _servers(name, settings, ages, paper)).items():
            own = base | {"algorithm": {"name": name} | comparison.options(name) | options}
            runs += edgesim.grid(own, {}, range(first, first + seeds), set_, labels=labels | {"server": server} | told)
    edgesim.study(runs, out=out, jobs=jobs, fresh=fresh)
    if tune:
        conclude(out)
        return
    conclude(out, [("server", "own")] + [("server", "kpfl")] * ages)
    tables.beside_dpfl(out)


Servers = dict[str, tuple[dict[str, Any], dict[str, Any]]]
"""By name, further labels and the algorithm's options."""


def _servers(name: str, settings: str, ages: bool, paper: dict[str, Any]) -> Servers:
    """With ``ages`` those of other exponents, too, the ``paper``'s among them if it has any."""
    exponents: dict[str, dict[str, Any]] = {}
    if ages:
        exponents["kpfl-ages-0"] = dict.fromkeys(EXPONENTS, 0.0)
        if paper:
            exponents["kpfl-ages-paper"] = {name: paper[name] for name in EXPONENTS}
        exponents["kpfl-ages-tuned"] = ON_DIGITS
    found: Servers = {"own": ({}, {})}
    if known.has_local_half(name):
        found["mifa"] = {}, {"server": "mifa"}
    own = kpfl_options(settings)
    return found | {server: ({}, {"kpfl": own | options}) for server, options in (SERVERS | exponents).items()}


def _tried() -> Servers:
    found: Servers = {}
    for active, idle in itertools.product(TRIED_ACTIVE, TRIED_IDLE):
        exponents = {"age_active": active, "age_idle": idle}
        found[f"kpfl {active:g} {idle:g}"] = (exponents, {"kpfl": exponents})
    return found


if __name__ == "__main__":
    start(main)
