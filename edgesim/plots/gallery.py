"""Every figure that one run, several runs or a study supports."""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from edgesim.analysis.metrics import evaluations
from edgesim.analysis.runs import Run, Study, read_study, runs_of
from edgesim.analysis.skew import holdings
from edgesim.analysis.summary import summarise
from edgesim.analysis.waste import AMOUNTS
from edgesim.errors import EdgesimError
from edgesim.plots import heat_map, style
from edgesim.plots.accuracy import draw_accuracy
from edgesim.plots.band_use import draw_band_use
from edgesim.plots.battery import draw_battery, has_batteries
from edgesim.plots.cell_map import draw_cell_map
from edgesim.plots.delay_cdf import draw_delay_cdf
from edgesim.plots.energy import draw_energy, draw_energy_over_rounds
from edgesim.plots.fairness import draw_fairness
from edgesim.plots.final_accuracy import draw_final_accuracy
from edgesim.plots.gantt import draw_gantt
from edgesim.plots.groups import MOST_SERIES, labels_of, panels_of
from edgesim.plots.participation import draw_participation, spans_a_day
from edgesim.plots.partition import draw_partition
from edgesim.plots.rounds_to_target import draw_rounds_to_target, levels_around
from edgesim.plots.scheduled import draw_scheduled
from edgesim.plots.staleness import draw_staleness, has_stale_updates
from edgesim.plots.training_loss import draw_training_loss, has_training_loss
from edgesim.plots.waste import draw_waste, draw_waste_over_rounds

MOST_PANELS = 6
"""Above this, or `MOST_SERIES`, figures with a line or bar per series are not drawn: nobody could read them."""


def draw(paths: list[Path], out: Path, round: int | None = None) -> list[Path]:
    """Draw all figures that the run folders or the one study folder support, as PNG and SVG, into ``out``.

    One run: Gantt chart of ``round`` (or of the first busy one), the band's use from that round on, map of the cell,
    who holds which classes, delay CDFs, energy, wasted work and the batteries' charge over its rounds, accuracy when
    evaluated. Several runs: accuracy, scheduled clients, CDFs, energy, wasted work, how evenly devices took part and
    staleness by policy, and participation over the day where all last for one. A study: those, Gantt
    chart, band use and classes held of its first run, a map of the first run on every topology, with a target rounds
    to reach it, and over two or more numeric knobs heat maps. Returns the paths of the files. Raises `EdgesimError`
    for a folder that is neither, or an unknown round.
    """
    if not paths:
        raise EdgesimError("nothing to draw: give run folders or one study folder")
    for path in paths:
        if not path.is_dir():
            raise EdgesimError(f"{path}: no such folder; give run folders or one study folder")
    studies = [path for path in paths if (path / "study.json").is_file()]
    if studies and len(paths) > 1:
        raise EdgesimError(f"{studies[0]}: is a study folder; draw it alone, or give run folders only")
    if round is not None and (studies or len(paths) > 1):
        raise EdgesimError("a round is chosen for the Gantt chart of one run; give one run folder with it")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EdgesimError(f"{out}: cannot be made a folder for figures: {error.strerror}") from None
    if studies:
        return draw_study(read_study(paths[0]), out)
    runs = runs_of(paths)
    if len(runs) > 1:
        return draw_runs(runs, out, None)
    files = draw_one_run(runs[0], out, round) + style.save(draw_cell_map(runs[0]), out / "cell_map")
    if has_batteries(runs[0]):
        files += style.save(draw_battery(runs[0]), out / "battery")
    return files + draw_runs(runs, out, None)


def draw_one_run(run: Run, out: Path, round: int | None) -> list[Path]:
    """Figures of one run: a round, those that follow it and, where the run knows classes, who holds which."""
    files = style.save(draw_gantt(run, round), out / "gantt")
    files += style.save(draw_band_use(run, round), out / "band_use")
    if holdings(run.devices):
        files += style.save(draw_partition(run), out / "partition")
    return files


def draw_runs(runs: Sequence[Run], out: Path, target: float | None) -> list[Path]:
    """Figures over series of runs: delays, scheduled clients, energy and, when evaluated, what was learnt."""
    panels = panels_of(runs)
    if len(panels) > MOST_PANELS or len(labels_of(panels)) > MOST_SERIES:
        return []
    files = style.save(draw_delay_cdf(panels), out / "delay_cdf")
    if len(runs) > 1:
        files += style.save(draw_scheduled(panels), out / "scheduled")
        files += style.save(draw_energy(panels), out / "energy")
        for amount in AMOUNTS:
            files += style.save(draw_waste(panels, amount), out / f"waste-{amount}")
        files += style.save(draw_fairness(panels), out / "fairness")
    else:
        files += style.save(draw_energy_over_rounds(runs[0]), out / "energy")
        for amount in AMOUNTS:
            files += style.save(draw_waste_over_rounds(runs[0], amount), out / f"waste-{amount}")
    if has_stale_updates(runs):
        files += style.save(draw_staleness(panels), out / "staleness")
    if all(spans_a_day(run) for run in runs):
        for panel in panels:
            for series in panel.series:
                ending = f"-{_slug(series.label)}" if len(runs) > 1 else ""
                files += style.save(draw_participation(series.runs), out / f"participation{ending}")
    evaluated = [run for run in runs if not evaluations(run.rounds).empty]
    if not evaluated:
        return files
    panels = panels_of(evaluated)
    files += style.save(draw_accuracy(panels, "rounds", target), out / "accuracy_rounds")
    files += style.save(draw_accuracy(panels, "seconds", target), out / "accuracy_seconds")
    if has_training_loss(evaluated):
        files += style.save(draw_training_loss(panels), out / "training_loss")
    if len(labels_of(panels)) > 1:
        files += style.save(draw_final_accuracy(panels), out / "final_accuracy")
    levels = [] if target is None else levels_around(target, evaluated)
    if levels:
        files += style.save(draw_rounds_to_target(panels, levels), out / "rounds_to_target")
    return files


def draw_study(study: Study, out: Path) -> list[Path]:
    """All figures of a study's finished runs; raises `EdgesimError` when there are none."""
    runs = study.finished
    if not runs:
        raise EdgesimError(f"{study.folder}: no run of the study is finished; run the study first")
    files = draw_one_run(runs[0], out, None) + draw_runs(runs, out, study.target)
    first_on = {run.knobs.get("topology"): run for run in reversed(runs)}
    for topology, run in first_on.items():
        ending = "" if topology is None else f"-{_slug(topology)}"
        files += style.save(draw_cell_map(run), out / f"cell_map{ending}")
    values = {name: {run.knobs.get(name) for run in runs} for name in study.knob_names}
    if sum(len(found) > 1 and not any(isinstance(value, str) for value in found) for found in values.values()) > 1:
        files += draw_heat_maps(summarise(study.folder), study.knob_names, out)
    return files


def draw_heat_maps(summary: pd.DataFrame, knobs: Sequence[str], out: Path) -> list[Path]:
    """Heat maps of a summary over its numeric knobs, apart for each combination of its text knobs.

    The deadline lies across when it varies, the next varying knob goes up, the others make panels. Measures
    that say nothing new are left out: arrivals equal to the scheduled, a miss rate of zero everywhere.
    """
    numeric = [name for name in knobs if pd.api.types.is_numeric_dtype(summary[name])]
    texts = [name for name in knobs if name not in numeric and summary[name].nunique(dropna=False) > 1]
    # A row that lacks a knob (a quantile under delays that are known) is no cell of that knob's map.
    shape = summary[numeric].isna().astype(str).agg("".join, axis=1) if numeric else ""
    files = []
    for key, rows in summary.assign(_shape=shape).groupby([*texts, "_shape"], sort=True, dropna=False):
        varying = [name for name in numeric if rows[name].nunique() > 1]
        if len(varying) < 2:
            continue
        varying.sort(key=lambda name: name != "tmax_s")
        ending = "".join(f"-{_slug(value)}" for value in key[:-1])
        for column in heat_map.COLUMNS:
            if _says_something(rows, column):
                figure = heat_map.draw_heat_map(rows, varying[0], varying[1], column, varying[2:])
                files += style.save(figure, out / f"heat_map-{_slug(column)}{ending}")
    return files


def _says_something(rows: pd.DataFrame, column: str) -> bool:
    if column not in rows or rows[column].isna().all():
        return False
    if column == "arrived":
        return not rows["arrived"].equals(rows["scheduled"])
    return column != "miss_rate" or bool((rows[column] > 0).any())


def _slug(value: object) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", str(value).lower()).strip("-")
