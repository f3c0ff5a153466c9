"""What a tuning says: cells, values and bounds, in lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from edgesim.analysis.measures import TO_STAY
from edgesim.base.plain_text import printable
from edgesim.plots.groups import knob_text, quantity
from edgesim.tables.table_text import number
from edgesim.tuning.journal import Told
from edgesim.tuning.objectives import TuningObjective
from edgesim.tuning.task import TuningTask

_FORM = "{:.4g}"


def cell_text(task: TuningTask, values: Mapping[str, Any]) -> str:
    """The knobs of a cell and their values, such as ``Tmax = 0.8 s, bandwidth = 20 MHz``."""
    names = task.names
    texts = (knob_text(names[key], value) for key, value in values.items())
    return printable(", ".join(texts).replace("$T_{\\max}$", "Tmax"))


def unit_of(objective: TuningObjective) -> str:
    """Its unit with a space before it; empty where it has none."""
    unit = quantity(objective.measure).unit
    return "" if unit in ("1", "count") else f" {unit}"


def row_text(row: Mapping[Any, Any], objective: TuningObjective) -> str:
    """An objective in a row of a summary: mean and interval, or a bound with how many runs reached the target."""
    name, unit = objective.measure, unit_of(objective)
    if objective.needs_target and (missed := row["not_stayed" if name in TO_STAY else "not_reached"]):
        return f"> {number(row[f'{name}_bound'], _FORM)}{unit} ({row['seeds'] - missed:.0f} of {row['seeds']:.0f})"
    half = row[f"{name}_high"] - row[name]
    return number(row[name], _FORM) + ("" if half != half else f" ± {number(half, '{:.2g}')}") + unit


def say_begin(console: Console, task: TuningTask, told: Sequence[Told], prunes: bool) -> None:
    """Print what is tuned and how, and what is known already."""
    for knob in task.knobs:
        console.print(f"knob {knob.told()}", highlight=False, soft_wrap=True)
    if task.equal_time:
        console.print(task.equal_time, highlight=False, soft_wrap=True)
    imported = sum(one.is_imported for one in told)
    parts = [
        f"{imported} finished cells of the study count as answered" if imported else "",
        f"{len(told) - imported} trials were answered or begun before" if len(told) > imported else "",
        "" if prunes else "no trial is given up early",
    ]
    if said := "; ".join(part for part in parts if part):
        console.print(said, highlight=False, soft_wrap=True)


def say_trial(console: Console, task: TuningTask, one: Told, told: Sequence[Told], trials: int) -> None:
    """Print what became of a trial, and the best so far of one objective."""
    done = sum(each.status != "running" and not each.is_imported for each in told)
    if one.seen is None:
        what = f"failed: {one.reason}"
    else:
        signs = [">= " if objective.only_grows and not one.counts else "" for objective in task.objectives]
        texts = [
            f"{objective.words} {sign}{value:.4g}{unit_of(objective)}"
            for objective, sign, value in zip(task.objectives, signs, one.seen.values, strict=True)
        ]
        what = ", ".join(texts) + (f"; given up: {one.reason}" if one.status == "pruned" else "")
        what += "; not every seed reached the target" if one.status == "complete" and not one.counts else ""
    console.print(
        f"trial {one.number} ({done} of {trials}): {cell_text(task, one.values)}: {what}{_best(task, told)}",
        highlight=False,
        soft_wrap=True,
    )


def _best(task: TuningTask, told: Sequence[Told]) -> str:
    good = [one.seen.values[0] for one in told if one.seen is not None and one.counts]
    if len(task.objectives) > 1 or not good:
        return ""
    (objective,) = task.objectives
    return f"; best {max(good) if objective.is_maximised else min(good):.4g}{unit_of(objective)}"
