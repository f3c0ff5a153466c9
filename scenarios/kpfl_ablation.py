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

from dpfl import (
    BY_DEFAULT,
    FIRST_TUNING_SEED,
    OPTIONS,
    QUICK,
    Alpha,
    Clients,
    DatasetName,
    Model,
    Rounds,
    Settings,
    World,
    has_kpfl,
    kpfl_options,
    report_beside,
    skew_of,
)
from typer import Option

import edgesim
from edgesim.scenario import Runs, counts, known, names, refuse_unknown, scenario, start

SERVERS: dict[str, dict[str, Any]] = {"kpfl-first": {"keep": "first"}, "kpfl": {}}
"""KPFL's options in the rows of table 3; beside them are those of an algorithm's own server and of MIFA's."""
EXPONENTS = ("age_active", "age_idle")
TRIED_ACTIVE, TRIED_IDLE = (0.0, 0.16), (-2.0, -0.5, -0.18, 0.0, 0.2, 0.5)
"""Exponents that ``--tune`` compares, each with each."""
ON_DIGITS = {"age_active": 0.0, "age_idle": -2.0}
"""What had the highest WE around FedProx under Markov participation with heavy skew, over 60 rounds and three seeds of
``--tune``: 89.2 % beside 88.5 % with the defaults and 88.3 % with the worst. Of ``age_idle`` the least was tried."""


@scenario(quick={"bases": "fedprox", **QUICK, "out": "runs/kpfl-quick"})
def main(
    runs: Runs,
    bases: Annotated[str, Option(help="Algorithms that KPFL is put around.")] = "fedprox,moon",
    participation: Annotated[
        str, Option(help="Laws: static, random, markov, arrival, departure, round-robin.")
    ] = BY_DEFAULT,
    alpha: Alpha = "heavy",
    clients: Clients = "10",
    rounds: Rounds = 100,
    dataset: DatasetName = "digits",
    model: Model = None,
    settings: Settings = "default",
    ages: Annotated[bool, Option("--ages", help="KPFL with other exponents of its weights by age, too.")] = False,
    tune: Annotated[bool, Option("--tune", help="Compare exponents instead.")] = False,
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
    runs.name_folder(f"kpfl-{Path(dataset).stem}")
    world = World(dataset, rounds, model, None)
    skew, parameter = skew_of(alpha)
    first = FIRST_TUNING_SEED if tune else 0
    for count, law, name in itertools.product(counts(clients), names(participation), names(bases)):
        base = world.base(law, parameter, count)
        labels = {"algorithm": name, "participation": law, "skew": skew, "clients": count}
        paper = known.published_options("kpfl", name, dataset, base["availability"]["model"]) if ages else {}
        for server, (told, options) in (_tried() if tune else _servers(name, settings, ages, paper)).items():
            own = base | {"algorithm": {"name": name} | world.options(name) | options}
            runs.add(own, labels=labels | {"server": server} | told, seeds=range(first, first + runs.seeds))
    if tune:
        runs.compare()
        return
    report_beside(runs.compare(against=[("server", "own")] + [("server", "kpfl")] * ages).folder)


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
