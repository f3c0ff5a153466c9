"""Messages of a tuning: cells, values and bounds as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from edgesim.analysis.measures import TO_STAY
from edgesim.base.plain_text import printable
from edgesim.plots.groups import knob_text, quantity
from edgesim.tables.table_text import number
from edgesim.tuning.journal import JournalTrial
from edgesim.tuning.objectives import TuningObjective
from edgesim.tuning.task import TuningTask

_FORM = "{:.4g}"


def cell_text(task: TuningTask, values: Mapping[str, Any]) -> str:
    """The knobs of a cell and their values, such as ``Tmax = 0.8 s, bandwidth = 20 MHz``."""
    names = task.names
    texts = (knob_text(names[key], value) for key, value in values.items())
    return printable(", ".join(texts).replace("$T_{\\max}$", "Tmax"))


def unit_of(objective: TuningObjective) -> str:
    """The unit of an objective with a space before it; empty if it has none."""
    unit = quantity(objective.measure).unit
    return "" if unit in ("1", "count") else f" {unit}"


def row_text(row: Mapping[Any, Any], objective: TuningObjective) -> str:
    """Text of a summary row's objective: mean and interval, or a bound and how many runs reached the target."""
    name, unit = objective.measure, unit_of(objective)
    if objective.needs_target and (missed := row["not_stayed" if name in TO_STAY else "not_reached"]):
        return f"> {number(row[f'{name}_bound'], _FORM)}{unit} ({row['seeds'] - missed:.0f} of {row['seeds']:.0f})"
    half = row[f"{name}_high"] - row[name]
    return number(row[name], _FORM) + ("" if half != half else f" ± {number(half, '{:.2g}')}") + unit


def say_begin(console: Console, task: TuningTask, trials: Sequence[JournalTrial], prunes: bool) -> None:
    """Print the knobs and how they are searched, and the number of earlier trials."""
    imported = sum(trial.is_imported for trial in trials)
    parts = [
        f"{imported} finished cells of the study count as trials" if imported else "",
        f"{len(trials) - imported} trials have ended or begun before" if len(trials) > imported else "",
        "" if prunes else "no trial is given up early",
    ]
    lines = [*(f"knob {knob.described()}" for knob in task.knobs), task.equal_time, "; ".join(filter(None, parts))]
    for line in filter(None, lines):
        console.print(line, soft_wrap=True)


def say_trial(
    console: Console, task: TuningTask, trial: JournalTrial, trials: Sequence[JournalTrial], most: int
) -> None:
    """Print the outcome of a trial, of ``most``, and for a single objective the best value so far."""
    done = sum(other.status != "running" and not other.is_imported for other in trials)
    if trial.seen is None:
        what = f"failed: {trial.reason}"
    else:
        signs = [">= " if objective.only_grows and not trial.counts else "" for objective in task.objectives]
        texts = [
            f"{objective.words} {sign}{value:.4g}{unit_of(objective)}"
            for objective, sign, value in zip(task.objectives, signs, trial.seen.values, strict=True)
        ]
        what = ", ".join(texts) + (f"; given up: {trial.reason}" if trial.status == "pruned" else "")
        what += "; not every seed reached the target" if trial.status == "complete" and not trial.counts else ""
    console.print(
        f"trial {trial.number} ({done} of {most}): {cell_text(task, trial.values)}: {what}{_best(task, trials)}",
        soft_wrap=True,
    )


def _best(task: TuningTask, trials: Sequence[JournalTrial]) -> str:
    good = [trial.seen.values[0] for trial in trials if trial.seen is not None and trial.counts]
    if len(task.objectives) > 1 or not good:
        return ""
    (objective,) = task.objectives
    return f"; best {max(good) if objective.is_maximised else min(good):.4g}{unit_of(objective)}"
