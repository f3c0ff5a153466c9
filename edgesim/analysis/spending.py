"""Cost of accuracy: the seconds, bits sent up and joules that a run had spent until each of its tests."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd

from edgesim.analysis.metrics import start_accuracy
from edgesim.analysis.needed import need_knobs
from edgesim.analysis.runs import RunFolder, StudyFolder
from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.folder.records import setting

Cost = Literal["seconds", "bits", "joules"]
COSTS: tuple[Cost, ...] = get_args(Cost)

LAST_SHARE = 0.1
"""Share of a budget, its end, over which accuracy is averaged: one test alone is noisy."""


def spending(run: RunFolder) -> pd.DataFrame:
    """The accuracies of a run in order of time, the start model's first: columns of `COSTS` and ``accuracy``.

    ``seconds`` is the instant of the test; ``bits`` (up) and ``joules`` are those of all devices until the end of the
    round that made the model. Raises `EdgesimError` for a run that was never tested.
    """
    start = start_accuracy(run.metrics)
    if start is None:
        raise EdgesimError(f"{run.folder}: metrics has no test_accuracy of round 0; expected a run that trains")
    rounds = run.rounds.sort_values("round")
    spent = rounds[["bits_up", "energy_j"]].cumsum().set_axis(["bits", "joules"], axis=1).assign(round=rounds["round"])
    tests = run.tests.rename(columns={"t_s": "seconds"}).merge(spent, on="round")
    first = pd.DataFrame([{"seconds": 0.0, "bits": 0.0, "joules": 0.0, "accuracy": start}])
    return pd.concat([first, tests], ignore_index=True)[[*COSTS, "accuracy"]]


def accuracy_over(tables: Sequence[pd.DataFrame], cost: Cost, points: int) -> tuple[Floats, Floats]:
    """Evenly spaced amounts of a cost [points], up to what every run spent, and each run's accuracy there.

    ``tables`` as from `spending`; the accuracies are [runs, points], each model's until the next test.
    """
    places = np.linspace(0, min(float(table[cost].iloc[-1]) for table in tables), points)
    values = [
        table["accuracy"].to_numpy()[np.searchsorted(table[cost].to_numpy(), places, side="right") - 1]
        for table in tables
    ]
    return places, np.array(values)


def accuracy_within(spent: pd.DataFrame, cost: Cost, budget: float) -> float:
    """Mean accuracy while the last `LAST_SHARE` of a budget of a cost was spent; each model holds until the next test.

    ``spent`` as from `spending`; from its last test on, its last model holds.
    """
    from_, to = (1 - LAST_SHARE) * budget, budget
    lasts = np.diff(np.clip([*spent[cost], np.inf], from_, to))
    return float(lasts @ spent["accuracy"].to_numpy() / (to - from_))


def scores(study: StudyFolder, places: Sequence[str], choice: str) -> pd.DataFrame:
    """Accuracy of every finished run at equal costs: columns ``places``, ``cost``, ``choice``, ``seed``, ``value``.

    Runs that agree in the knobs ``places`` have the same three budgets: the seconds at which all of them stop
    (``stop_at_s``), and the least bits and joules that one of them spent in all. ``value`` is the accuracy
    `accuracy_within` the budget, ``budget`` its amount, ``spent`` what the run spent in its ``rounds`` whole rounds.
    Raises `EdgesimError` for runs that stop at different times, or that lack one of the knobs.
    """
    rows = []
    need_knobs(study.finished, *places, choice)
    for run in study.finished:
        table = spending(run)
        stop_s = float(setting(run.folder, run.config, "stop_at_s", int, float))
        totals = {"seconds": stop_s, "bits": run.rounds["bits_up"].sum(), "joules": run.rounds["energy_j"].sum()}
        facts = {name: run.knobs[name] for name in (*places, choice)} | {"seed": run.seed, "rounds": len(run.rounds)}
        rows += [facts | {"cost": cost, "spent": totals[cost], "table": table} for cost in COSTS]
    runs = pd.DataFrame(rows)
    grouped = runs.groupby([*places, "cost"], sort=False)["spent"]
    runs["budget"] = grouped.transform("min")
    if (unequal := runs[(runs["cost"] == "seconds") & (runs["spent"] > runs["budget"])]).size:
        row = unequal.iloc[0]
        raise EdgesimError(
            f"{study.folder}: stop_at_s is {row['spent']:g} for {choice} = {row[choice]} and {row['budget']:g} for "
            "others; runs are compared at equal seconds"
        )
    runs["value"] = [
        accuracy_within(table, cost, budget)
        for table, cost, budget in runs[["table", "cost", "budget"]].itertuples(index=False)
    ]
    return runs[[*places, "cost", choice, "seed", "value", "budget", "spent", "rounds"]]
