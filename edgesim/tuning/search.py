"""The search: trials are asked for, run, perhaps given up, and answered, until there are enough."""

import time
from collections.abc import Callable, Mapping, Sequence

from edgesim.base.errors import EdgesimError, NoRunFinished
from edgesim.studies.plan import Knob as Value
from edgesim.studies.plan import PlannedRun
from edgesim.tuning.journal import Journal, Told
from edgesim.tuning.objectives import Seen, TuningObjective, dominates
from edgesim.tuning.trial import Cell, Outcome, Prune

_LOOK_S = 1.0
"""How often trials are looked at that other processes work on."""
_HOPELESS = 10
"""If so many trials fail and none has an answer, the search ends."""

Evaluate = Callable[[Sequence[Cell], Prune | None], Mapping[int, Outcome]]
Tell = Callable[[Told, Sequence[Told]], None]
"""Hears of each trial that was answered, with all trials."""


def search(
    journal: Journal,
    runs_of: Callable[[Mapping[str, Value]], list[PlannedRun]],
    evaluate: Evaluate,
    trials: int,
    at_once: int,
    prune: Prune | None,
    on_trial: Tell,
    on_wait: Callable[[int], None],
) -> None:
    """Ask for trials and answer them, until all processes together have answered ``trials``, or no cell is untried.

    ``runs_of`` plans the runs of a cell and raises `EdgesimError` where its config is refused. ``evaluate`` is given
    up to ``at_once`` cells. ``on_wait`` hears, once, of how many trials other processes work on. Raises
    `EdgesimError` where the first trials all fail.
    """
    has_waited = False
    while True:
        cells: list[Cell] = []
        outcomes: dict[int, Outcome] = {}
        while len(cells) < at_once and (asked := journal.ask(trials)) is not None:
            number, values = asked
            try:
                cells.append(Cell(number, values, runs_of(values)))
            except EdgesimError as error:
                cells.append(Cell(number, values, ()))
                outcomes[number] = Outcome("failed", reason=str(error))
        if not cells:
            others = journal.elsewhere()
            if not others:
                return
            if not has_waited:
                has_waited = True
                on_wait(others)
            time.sleep(_LOOK_S)
            continue
        outcomes |= evaluate([cell for cell in cells if cell.number not in outcomes], prune)
        for cell in cells:
            journal.tell(cell.number, outcomes[cell.number])
            told = journal.told()
            on_trial(next(one for one in told if one.of_optuna == cell.number), told)
        _refuse_hopeless(journal, trials)


def _refuse_hopeless(journal: Journal, trials: int) -> None:
    told = journal.told()
    failed = [one for one in told if one.status == "failed"]
    if len(failed) >= min(trials, _HOPELESS) and not any(one.seen for one in told):
        raise NoRunFinished(f"all of {len(failed)} trials failed; the first one: {failed[0].reason}")


def pruner(journal: Journal, objectives: Sequence[TuningObjective], best: int) -> Prune | None:
    """When a trial is given up; None where that cannot be said of the objectives.

    Where all of them only grow, what a run has so far is a bound: a trial is given up when ``best`` others are better
    whatever follows or, of several objectives, one is better in all. One other objective is judged by Optuna's median
    rule, which may err.
    """
    if all(objective.only_grows for objective in objectives):
        return lambda _, __, so_far: _has_lost(journal.told(), objectives, so_far, best)
    if len(objectives) > 1:
        return None
    return lambda cell, rung, so_far: (
        "below the median of other trials" if journal.is_below_median(cell.number, rung, so_far.values[0]) else ""
    )


def _has_lost(told: Sequence[Told], objectives: Sequence[TuningObjective], so_far: Seen, best: int) -> str:
    counted = [one.seen.values for one in told if one.seen is not None and one.counts]
    better = sum(dominates(values, so_far.values, objectives) for values in counted)
    if better < (best if len(objectives) == 1 else 1):
        return ""
    return f"{better} other {'trial is' if better == 1 else 'trials are'} better whatever follows"
