"""The results of a tuning: the table of trials, the best cells on their own and on fresh seeds, figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from edgesim.analysis.summary import summarise
from edgesim.folder.records import write_whole
from edgesim.plots.formats import Formats
from edgesim.studies.plan import Study, own
from edgesim.studies.running import run_study
from edgesim.tables.table_text import bare_table, print_whole
from edgesim.tuning.journal import JournalTrial
from edgesim.tuning.messages import cell_text, row_text
from edgesim.tuning.objectives import TuningObjective
from edgesim.tuning.ranking import front, has_reached, ranked
from edgesim.tuning.task import TuningTask

TABLE = "trials.csv"
_SHOWN = 10
"""Rows of the table on the terminal."""


@dataclass(frozen=True)
class Tuned:
    """The results of a tuning."""

    folder: Path
    """The study's folder, which has the runs of all trials."""
    trials: pd.DataFrame
    """``trials.csv``: a row for each trial, with its knobs, how it ended, and its objectives."""
    best: pd.DataFrame
    """Rows of the study's summary, the best first: of one objective all that count, of several the Pareto front."""
    fresh: pd.DataFrame
    """The summary of the best cells over fresh seeds, which chose nothing; empty if no cell was run again."""
    answers: list[str]
    """The results in sentences."""


def conclude(
    out: Path,
    task: TuningTask,
    journal_trials: Sequence[JournalTrial],
    importances: Mapping[str, Mapping[str, float]],
    judge: int,
    jobs: int | None,
    anew: bool,
    console: Console,
    formats: Formats,
) -> Tuned:
    """Run the best cells on fresh seeds; print, write and draw the results.

    With ``anew`` these runs begin from the start, even if they are finished.
    """
    complete = [trial.values for trial in journal_trials if trial.status == "complete"]
    summary = _of_cells(summarise(out), task, complete)
    trials = trial_table(task, journal_trials, summary)
    write_whole(out / TABLE, trials.to_csv(index=False, lineterminator="\n"))
    best = finalists(summary, task, judge)
    fresh = _judged_again(out, task, best, jobs, anew, console) if len(best) else pd.DataFrame()
    first, reached = task.objectives[0], summary[has_reached(summary, task.objectives)]
    several = len(task.objectives) > 1
    leading = front(summary, task.objectives) if several else ranked(reached, first.measure, first.is_maximised)
    _print_table(out, task, leading if len(leading) else best, fresh, console)
    answers = answers_of(task, summary, best, fresh)
    with console.status("drawing the figures"):
        figures = _draw(out, task, trials, leading, importances, formats)
    for answer in answers:
        console.print(answer, soft_wrap=True)
    counts = trials["status"].value_counts()
    by_status = ", ".join(f"{count} {status}" for status, count in counts.items())
    text = f"{len(trials)} trials: {by_status}; table in {out / TABLE}, {len(figures)} figures in {out / 'plots'}"
    console.print(text, soft_wrap=True)
    return Tuned(out, trials, leading.reset_index(drop=True), fresh, answers)


def _of_cells(summary: pd.DataFrame, task: TuningTask, cells: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of a summary whose knobs have the values of some cells."""
    keys = {_key(task, values) for values in cells}
    return summary[[_key(task, values) in keys for values in cells_of(task, summary)]].reset_index(drop=True)


def _key(task: TuningTask, values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(values[key] for key in task.names)


def trial_table(task: TuningTask, trials: Sequence[JournalTrial], summary: pd.DataFrame) -> pd.DataFrame:
    """A row for each trial: number, knobs, how it ended and why, and of each objective mean, interval and bound.

    The mean of a trial in which not every seed reached the target is over those that did, as in ``summary.csv``; a
    pruned one has bounds alone, and where it was pruned.
    """
    names = task.names
    rows = _by_cell(task, summary)
    table = []
    for trial in trials:
        row = rows.get(_key(task, trial.values), {}) if trial.status == "complete" else {}
        line: dict[str, Any] = {"trial": trial.number} | {names[key]: trial.values[key] for key in names}
        line |= {"status": trial.status, "imported": trial.is_imported, "counts": trial.counts}
        for place, objective in enumerate(task.objectives):
            measure = objective.measure
            columns = [measure, f"{measure}_low", f"{measure}_high"]
            columns += [f"{measure}_bound"] if objective.only_grows else []
            line |= {column: row.get(column, np.nan) for column in columns}
            if trial.status == "pruned" and trial.seen is not None and objective.only_grows:
                line[f"{measure}_bound"] = trial.seen.values[place]
        table.append(line | {"reason": trial.reason})
    return pd.DataFrame(table)


def finalists(summary: pd.DataFrame, task: TuningTask, count: int) -> pd.DataFrame:
    """Rows of the cells to run on fresh seeds: with one objective the best, with several some along the front.

    The ends of the front are among them. If no cell reached the target, the nearest ones.
    """
    first = task.objectives[0]
    ahead = ranked(summary, first.measure, first.is_maximised)
    if len(task.objectives) > 1 and len(on_front := front(summary, task.objectives)):
        places = np.unique(np.linspace(0, len(on_front) - 1, min(count, len(on_front))).round().astype(int))
        return on_front.iloc[places] if count else on_front.head(0)
    return ahead.head(count)


def _judged_again(
    out: Path, task: TuningTask, best: pd.DataFrame, jobs: int | None, anew: bool, console: Console
) -> pd.DataFrame:
    fresh = out.with_name(f"{out.name}-fresh")
    cells = cells_of(task, best)
    runs = [run for values in cells for run in task.runs(values, range(task.seeds, 2 * task.seeds))]
    run_study(Study(fresh.name, runs, task.target, task.reference), fresh, jobs, console, anew)
    return _of_cells(summarise(fresh), task, cells)


def cells_of(task: TuningTask, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Values of the knobs, by key, of rows of a summary."""
    return [{key: own(row[name]) for key, name in task.names.items()} for row in rows.to_dict("records")]


def _by_cell(task: TuningTask, rows: pd.DataFrame) -> dict[tuple[Any, ...], dict[Any, Any]]:
    """Rows of a summary by the values of their knobs."""
    return {_key(task, values): row for values, row in zip(cells_of(task, rows), rows.to_dict("records"), strict=True)}


def _print_table(out: Path, task: TuningTask, rows: pd.DataFrame, fresh: pd.DataFrame, console: Console) -> None:
    what = "Pareto front" if len(task.objectives) > 1 else "best cells"
    more = f", {_SHOWN} of {len(rows)}" if len(rows) > _SHOWN else ""
    headings = [objective.words for objective in task.objectives]
    if len(fresh):
        headings += [f"{heading}, fresh seeds" for heading in headings]
    shown = bare_table(f"{out}: {what}{more}", list(task.names.values()), headings)
    judged = _by_cell(task, fresh)
    for values, row in zip(cells_of(task, rows), rows.head(_SHOWN).to_dict("records"), strict=False):
        texts = [row_text(row, objective) for objective in task.objectives]
        if len(fresh):
            anew = judged.get(_key(task, values))
            texts += ["" if anew is None else _on_fresh(task, anew, objective) for objective in task.objectives]
        shown.add_row(*(f"{value:g}" if isinstance(value, float) else str(value) for value in values.values()), *texts)
    print_whole(console, shown)


def answers_of(task: TuningTask, summary: pd.DataFrame, best: pd.DataFrame, fresh: pd.DataFrame) -> list[str]:
    """The best cell by each objective, on the seeds that chose it and, where it was judged again, on fresh ones."""
    if summary.empty:
        return ["No trial was run to its end."]
    answers = []
    judged = _by_cell(task, fresh)
    reached = has_reached(summary, task.objectives)
    if not reached.any():
        answers.append(
            f"No trial reached the target {task.target:g} on all of its seeds: what follows are bounds, not times; "
            "give runs more time or choose a lower target."
            if task.target is not None
            else "No trial has all of its objectives."
        )
    for objective in task.objectives:
        (values, *_), row = _first(task, summary, objective)
        what = "Greatest" if objective.is_maximised else "Least"
        text = f"{what} {objective.words} (mean ± 95 %): {cell_text(task, values)}, {row_text(row, objective)}"
        if (anew := judged.get(_key(task, values))) is not None:
            text += f" on the seeds that chose it, {_on_fresh(task, anew, objective)} on fresh ones"
        edges = [knob.key for knob in task.knobs if _is_at_edge(knob, values[knob.key])]
        answers.append(text + (f"; that is the edge of {' and '.join(edges)}, widen it." if edges else "."))
        if reached.any() and objective.needs_target:
            answers += _cut_off(task, summary[~reached], objective, float(row[objective.measure]))
    if len(task.objectives) == 1 and len(fresh) > 1:
        (objective,) = task.objectives
        (first, *_), row = _first(task, fresh, objective)
        if first != cells_of(task, best.head(1))[0]:
            answers.append(f"On the fresh seeds {cell_text(task, first)} comes first of the {len(fresh)} judged again.")
    return answers


def _cut_off(task: TuningTask, missed: pd.DataFrame, objective: TuningObjective, best: float) -> list[str]:
    """A sentence about cells whose runs ended before they can be known to be worse than the best one's value."""
    rows = missed[missed[f"{objective.measure}_bound"] < best]
    if rows.empty:
        return []
    cells = [f"{cell_text(task, values)} ({row_text(row, objective)})"
             for values, row in zip(cells_of(task, rows), rows.to_dict("records"), strict=True)]  # fmt: skip
    more = f" and {len(cells) - _SHOWN} more" if len(cells) > _SHOWN else ""
    return [f"Cut off before the best one's {objective.words}, and perhaps better: {'; '.join(cells[:_SHOWN])}{more}; "
            "give runs more time."]  # fmt: skip


def _on_fresh(task: TuningTask, row: Mapping[Any, Any], objective: Any) -> str:
    """Text of an objective of a cell on the fresh seeds, with their number if runs failed."""
    seeds = int(row["seeds"])
    failed = f" ({seeds} of {task.seeds} seeds; the runs of the others failed)" if seeds < task.seeds else ""
    return row_text(row, objective) + failed


def _first(task: TuningTask, rows: pd.DataFrame, objective: Any) -> tuple[list[dict[str, Any]], dict[Any, Any]]:
    best = ranked(rows, objective.measure, objective.is_maximised).head(1)
    return cells_of(task, best), best.to_dict("records")[0]


def _is_at_edge(knob: Any, value: Any) -> bool:
    # Of two values of a list each is at an end, which says nothing.
    if knob.choices and (not knob.is_ordered or len(knob.choices) == 2):
        return False
    return value in (knob.ends[0], knob.ends[-1])


def _draw(
    out: Path,
    task: TuningTask,
    trials: pd.DataFrame,
    best: pd.DataFrame,
    importances: Mapping[str, Mapping[str, float]],
    formats: Formats,
) -> list[Path]:
    from edgesim.plots import tuning as figures
    from edgesim.plots.style import save

    measures = {objective.measure: objective.is_maximised for objective in task.objectives}
    numeric = [task.names[knob.key] for knob in task.knobs if not knob.choices or knob.is_ordered]
    logs = [task.names[knob.key] for knob in task.knobs if knob.spans_a_decade]
    shares = {
        measure: {task.names[key]: share for key, share in by_key.items()} for measure, by_key in importances.items()
    }
    drawn = {"history": figures.draw_history(trials, measures)}
    if len(measures) > 1 and len(best):
        drawn["front"] = figures.draw_front(trials, best, list(measures))
    if any(shares.values()):
        drawn["importance"] = figures.draw_importance(shares)
    if len(numeric) > 1 and trials["counts"].any():
        totals = {name: sum(by_name.get(name, 0.0) for by_name in shares.values()) for name in numeric}
        x, y = sorted(numeric, key=lambda name: -totals[name])[:2]
        drawn["contour"] = figures.draw_contour(trials, x, y, list(measures), logs)
    return [path for name, figure in drawn.items() for path in save(figure, out / "plots" / f"tuning-{name}", formats)]
