"""The search of a tuning: asks for trials, runs them, perhaps prunes them, and notes their outcomes."""

import time
from collections.abc import Callable, Mapping, Sequence

from edgesim.base.errors import EdgesimError, NoRunFinished
from edgesim.studies.plan import Knob as Value
from edgesim.studies.plan import PlannedRun
from edgesim.tuning.journal import Journal, JournalTrial
from edgesim.tuning.objectives import Seen, TuningObjective, dominates
from edgesim.tuning.trial import Cell, Outcome, Prune

_LOOK_S = 1.0
"""Wait between two looks at the trials that other processes work on."""
_HOPELESS = 10
"""Failed trials after which the search ends, if none has a result."""

Evaluate = Callable[[Sequence[Cell], Prune | None], Mapping[int, Outcome]]
OnTrial = Callable[[JournalTrial, Sequence[JournalTrial]], None]
"""Called with each trial that has ended, and with all trials."""


def search(
    journal: Journal,
    runs_of: Callable[[Mapping[str, Value]], list[PlannedRun]],
    evaluate: Evaluate,
    trials: int,
    at_once: int,
    prune: Prune | None,
    on_trial: OnTrial,
    on_wait: Callable[[int], None],
) -> None:
    """Run trials until all processes together have run ``trials`` of them, or no cell is untried.

    ``runs_of`` plans the runs of a cell and raises `EdgesimError` if its config is refused. ``evaluate`` gets up to
    ``at_once`` cells. ``on_wait`` is called once, with the number of trials that other processes work on. Raises
    `EdgesimError` if the first trials all fail.
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
            all_trials = journal.trials()
            on_trial(next(trial for trial in all_trials if trial.of_optuna == cell.number), all_trials)
        _refuse_hopeless(journal, trials)


def _refuse_hopeless(journal: Journal, trials: int) -> None:
    known = journal.trials()
    failed = [trial for trial in known if trial.status == "failed"]
    if len(failed) >= min(trials, _HOPELESS) and not any(trial.seen for trial in known):
        raise NoRunFinished(f"all of {len(failed)} trials failed; the first one: {failed[0].reason}")


def pruner(journal: Journal, objectives: Sequence[TuningObjective], best: int) -> Prune | None:
    """The rule by which trials are pruned; None if there is none for the objectives.

    If all objectives only grow, a run's value so far is a bound: a trial is pruned when ``best`` others are better
    whatever follows or, with several objectives, one is better in all. A single other objective is judged by Optuna's
    median rule, which may err.
    """
    if all(objective.only_grows for objective in objectives):
        return lambda _, __, so_far: _has_lost(journal.trials(), objectives, so_far, best)
    if len(objectives) > 1:
        return None
    return lambda cell, rung, so_far: (
        "below the median of other trials" if journal.is_below_median(cell.number, rung, so_far.values[0]) else ""
    )


def _has_lost(trials: Sequence[JournalTrial], objectives: Sequence[TuningObjective], so_far: Seen, best: int) -> str:
    counted = [trial.seen.values for trial in trials if trial.seen is not None and trial.counts]
    better = sum(dominates(values, so_far.values, objectives) for values in counted)
    if better < (best if len(objectives) == 1 else 1):
        return ""
    return f"{better} other {'trial is' if better == 1 else 'trials are'} better whatever follows"
