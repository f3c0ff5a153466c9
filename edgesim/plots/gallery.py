"""Every figure that one run, several runs or a study supports: by name, and drawn into a folder."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import pandas as pd
from matplotlib.figure import Figure

from edgesim.analysis.accuracy_series import Over
from edgesim.analysis.differences import differences
from edgesim.analysis.measures import TO_TARGET
from edgesim.analysis.metrics import evaluations
from edgesim.analysis.pairing import pairings
from edgesim.analysis.products import Products, digest_of, digest_of_study
from edgesim.analysis.runs import Knob, RunFolder, StudyFolder, has_runs, read_study, runs_of
from edgesim.analysis.skew import holdings
from edgesim.analysis.static_pairs import pairs
from edgesim.analysis.summary import summarise
from edgesim.analysis.waste import AMOUNTS
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import refuse_link
from edgesim.folder.records import read_run
from edgesim.plots import heat_map
from edgesim.plots.accuracy import draw_accuracy
from edgesim.plots.album import Album, Pictures
from edgesim.plots.band_use import draw_band_use
from edgesim.plots.battery import draw_battery, has_batteries
from edgesim.plots.cell_map import draw_cell_map
from edgesim.plots.delay_cdf import draw_delay_cdf
from edgesim.plots.difference_curves import draw_difference_curves
from edgesim.plots.differences import draw_differences
from edgesim.plots.energy_bars import draw_energy, draw_energy_over_rounds
from edgesim.plots.fairness import draw_fairness
from edgesim.plots.final_accuracy import draw_final_accuracy
from edgesim.plots.formats import USUAL_FORMATS, Formats, known_formats
from edgesim.plots.gantt import draw_gantt
from edgesim.plots.groups import MOST_SERIES, labels_of, panels_of, setting_text
from edgesim.plots.participation import draw_participation, spans_a_day
from edgesim.plots.participation_loss import draw_participation_loss, panels_of_pairs
from edgesim.plots.partition import draw_partition
from edgesim.plots.rounds_to_target import draw_rounds_to_target, levels_around
from edgesim.plots.scheduled import draw_scheduled
from edgesim.plots.staleness import draw_staleness, has_stale_updates
from edgesim.plots.style import headed
from edgesim.plots.training_loss import draw_training_loss, has_training_loss
from edgesim.plots.waste import draw_waste, draw_waste_over_rounds

MOST_PANELS = 6
"""Above this, or `MOST_SERIES`, figures with a line or bar per series are not drawn: they would be unreadable."""


_ALL = "all figures"
"""Name of the list of a folder's figures in its notes (`edgesim.analysis.products`)."""


NEEDS = {
    "accuracy": "tests of the model",
    "battery": "devices with batteries",
    "difference": "a study with several values of a knob",
    "fairness": "several runs",
    "final_accuracy": "tests of the model, and several series",
    "heat_map": "a study with two numeric knobs that vary",
    "participation": "runs of a day or longer",
    "participation_loss": "runs with devices that come and go, and a static one equal in all else",
    "partition": "data with classes",
    "rounds_to_target": "a study with a target, and tests of the model",
    "scheduled": "several runs",
    "staleness": "updates that are merged late",
    "training_loss": "training",
}
"""What figures need that not every run or study has, by their names, or the beginnings of these."""


def draw(paths: list[Path], out: Path, round: int | None = None, formats: Formats = USUAL_FORMATS) -> list[Path]:
    """Draw all figures that the run folders or the one study folder support into ``out``, in every format.

    One run: Gantt chart of ``round`` (or of the first round that scheduled a device), band use from that round on, map
    of the cell, classes held by the devices, delay CDFs; energy, wasted work and battery charge over its rounds;
    accuracy if evaluated. Several runs: accuracy, scheduled clients, delay CDFs, energy, wasted work, fairness and
    staleness by policy, participation over the day if all runs last a day, and the accuracy that dynamic participation
    costs if static runs are among them. A study: the figures of several runs;
    Gantt chart, band use and classes held of its first run; a map of the first run on every topology; with a target
    rounds to reach it; with two or more numeric knobs heat maps. A figure that this version has drawn from the same
    results is kept. Returns the paths of all files. Raises `EdgesimError` for a folder that is neither a run's nor a
    study's, an unknown round, or unknown formats.
    """
    formats = known_formats(formats)
    if not paths:
        raise EdgesimError("nothing to draw: give run folders or one study folder")
    for path in paths:
        if not path.is_dir():
            what = "is a file" if path.is_file() else "no such folder"
            raise EdgesimError(f"{path}: {what}; give run folders or one study folder")
    twice = [path for path, times in Counter(path.resolve() for path in paths).items() if times > 1]
    if twice:
        raise EdgesimError(f"{twice[0]}: is given more than once, and would count as several seeds; give it once")
    studies = [path for path in paths if has_runs(path)]
    if studies and len(paths) > 1:
        raise EdgesimError(f"{studies[0]}: is a study folder; draw it alone, or give run folders only")
    if round is not None and (studies or len(paths) > 1):
        raise EdgesimError("round: chooses the round of one run's Gantt chart; give one run folder with it")
    study = read_study(paths[0]) if studies else None
    runs = study.finished if study else runs_of(paths)
    if not runs:
        raise EdgesimError(f"{paths[0]}: no run of the study is finished; run the study first")
    for run in runs:
        read_run(run.folder)
    if out.parent in paths:
        refuse_link(out)
    digest = digest_of_study(study) if study else digest_of(runs, round)
    called = f"{_ALL} as {', '.join(formats)}"
    drawn = Products(out).current(called, digest)
    if drawn is not None:
        return [out / name for name in drawn]
    album = Album(out, formats)
    album.add_all(of_study(study) if study else of_runs(runs, round))
    Products(out).note(called, digest, album.files, [path.name for path in album.files])
    return album.files


def of_runs(runs: Sequence[RunFolder], round: int | None = None) -> Pictures:
    """The figures that one run or several support, as `draw` says; raises `EdgesimError` for runs without rounds."""
    pictures = Pictures()
    if len(runs) > 1:
        _of_series(runs, pictures)
        _of_losses(runs, pictures)
    else:
        _of_one_run(runs[0], pictures, round)
        pictures.add("cell_map", lambda: draw_cell_map(runs[0]), runs)
        if has_batteries(runs[0]):
            pictures.add("battery", lambda: draw_battery(runs[0]), runs)
        _of_series(runs, pictures)
    return pictures


def of_study(study: StudyFolder) -> Pictures:
    """The figures that the finished runs of a study support, at least one."""
    pictures = Pictures()
    runs = study.finished
    _of_one_run(runs[0], pictures, of=setting_text(runs[0]))
    _of_series(runs, pictures, study)
    _of_losses(runs, pictures)
    if compared := study.compared_knob:
        add_paired(study, *compared, pictures)
    first_on = {run.knobs.get("topology"): run for run in reversed(runs)}
    for topology, run in first_on.items():
        ending = "" if topology is None else f"-{_slug(topology)}"
        pictures.add(f"cell_map{ending}", partial(_cell_map, run), [run])
    values = {name: {run.knobs.get(name) for run in runs} for name in study.knob_names}
    numbers = [not any(isinstance(value, str | bool) for value in found) for found in values.values() if len(found) > 1]
    if sum(numbers) > 1:
        _add_heat_maps(study, pictures)
    return pictures


def _of_one_run(run: RunFolder, pictures: Pictures, round: int | None = None, of: str = "") -> None:
    """Figures of one run: a round, the band use from it on and, if the run has classes, those that devices hold.

    ``of`` stands above each: which run it is, where there are several.
    """
    pictures.add("gantt", lambda: headed(draw_gantt(run, round), of), [run], round)
    pictures.add("band_use", lambda: headed(draw_band_use(run, round), of), [run], round)
    if holdings(run.devices):
        pictures.add("partition", lambda: headed(draw_partition(run), of), [run])


def _cell_map(run: RunFolder) -> Figure:
    return headed(draw_cell_map(run), setting_text(run))


def _of_series(runs: Sequence[RunFolder], pictures: Pictures, study: StudyFolder | None = None) -> None:
    """Figures over series of runs: delays, scheduled clients, energy and, if evaluated, accuracy."""
    panels = panels_of(runs)
    if len(panels) > MOST_PANELS or len(labels_of(panels)) > MOST_SERIES:
        return
    pictures.add("delay_cdf", lambda: draw_delay_cdf(panels), runs)
    if len(runs) > 1:
        pictures.add("scheduled", lambda: draw_scheduled(panels), runs)
        pictures.add("energy", lambda: draw_energy(panels), runs)
        for amount in AMOUNTS:
            pictures.add(f"waste-{amount}", partial(draw_waste, panels, amount), runs)
        pictures.add("fairness", lambda: draw_fairness(panels), runs)
    else:
        pictures.add("energy", lambda: draw_energy_over_rounds(runs[0]), runs)
        for amount in AMOUNTS:
            pictures.add(f"waste-{amount}", partial(draw_waste_over_rounds, runs[0], amount), runs)
    if has_stale_updates(runs):
        pictures.add("staleness", lambda: draw_staleness(panels), runs)
    if all(spans_a_day(run) for run in runs):
        for panel in panels:
            for series in panel.series:
                ending = f"-{_slug(series.label)}" if len(runs) > 1 else ""
                pictures.add(f"participation{ending}", partial(draw_participation, series.runs), series.runs)
    _of_learning([run for run in runs if not evaluations(run.rounds).empty], pictures, study)


def _of_learning(runs: Sequence[RunFolder], pictures: Pictures, study: StudyFolder | None) -> None:
    """Figures over series of evaluated runs."""
    if not runs:
        return
    panels = panels_of(runs)
    target, reference = (study.target, study.reference) if study else (None, "random")
    for over in get_args(Over):
        draws = partial(draw_accuracy, panels, over, target, reference)
        pictures.add(f"accuracy_{over}", draws, runs, target, reference)
    if has_training_loss(runs):
        pictures.add("training_loss", lambda: draw_training_loss(panels), runs)
    if len(labels_of(panels)) > 1:
        pictures.add("final_accuracy", lambda: draw_final_accuracy(panels), runs)
    levels = [] if target is None else levels_around(target, runs)
    if levels:
        pictures.add("rounds_to_target", lambda: draw_rounds_to_target(panels, levels), runs, levels)


def _of_losses(runs: Sequence[RunFolder], pictures: Pictures) -> None:
    """Add the accuracy lost to dynamic participation, if some runs have a static run that is equal in all else."""
    compared = pairs(runs)[0]
    if compared and len(panels_of_pairs(compared)) <= MOST_PANELS:
        pictures.add("participation_loss", lambda: draw_participation_loss(compared), runs)


def draw_against(
    study: StudyFolder,
    knob: str,
    reference: Knob,
    out: Path,
    called: str | None = None,
    formats: Formats = USUAL_FORMATS,
) -> None:
    """Draw the figures of `add_paired` into the folder ``out``, unless all of them are there and current."""
    name, digest = f"figures of {called or knob} as {', '.join(formats)}", digest_of_study(study, knob, reference)
    if Products(out).current(name, digest) is None:
        album, pictures = Album(out, formats), Pictures()
        add_paired(study, knob, reference, pictures, called)
        album.add_all(pictures)
        Products(out).note(name, digest, album.files)


def add_paired(study: StudyFolder, knob: str, reference: Knob, pictures: Pictures, called: str | None = None) -> None:
    """Add figures of the paired differences to one value of a knob: a forest plot, and curves over time.

    Their names end with ``called``, the knob's name when absent.
    """
    ending = called or knob
    paired = pairings(study.finished, knob, reference)
    if not any(pairing.runs for pairing in paired):
        return
    facts = (study.target, knob, reference)
    forest = partial(_forest, study.folder, knob, reference)
    pictures.add(f"differences-{ending}", forest, study.finished, *facts)
    tested = [pairing for pairing in paired if pairing.runs and not evaluations(pairing.runs[0][0].rounds).empty]
    panels = panels_of([run for pairing in tested for run, _ in pairing.runs])
    if tested and len(panels) <= MOST_PANELS and len(labels_of(panels)) <= MOST_SERIES:
        for over in get_args(Over):
            draws = partial(draw_difference_curves, tested, over, knob, reference)
            pictures.add(f"difference_{over}-{ending}", draws, study.finished, *facts)


def _forest(study_folder: Path, knob: str, reference: Knob) -> Figure:
    return draw_differences(differences(study_folder, knob, reference), knob, reference)


def _add_heat_maps(study: StudyFolder, pictures: Pictures) -> None:
    """Heat maps of a study's summary over its numeric knobs, one for each combination of its other knobs.

    The deadline, if it varies, is the x axis, the next varying knob the y axis, the others make panels. Measures
    that add nothing are left out: arrivals equal to the scheduled, a miss rate of zero everywhere.
    """
    summary, knobs = summarise(study.folder), study.knob_names
    numeric = [name for name in knobs if _is_numeric(summary[name])]
    texts = [name for name in knobs if name not in numeric and summary[name].nunique(dropna=False) > 1]
    # A row that lacks a knob (a quantile under delays that are known) is no cell of that knob's map.
    shape = summary[numeric].isna().astype(str).agg("".join, axis=1) if numeric else ""
    groups = list(summary.assign(_shape=shape).groupby([*texts, "_shape"], sort=True, dropna=False))
    shapes = Counter(str(key[:-1]) for key, _ in groups)
    for key, rows in groups:
        varying = [name for name in numeric if rows[name].nunique() > 1]
        if len(varying) < 2:
            continue
        varying.sort(key=lambda name: name != "tmax_s")
        lacks = [name for name in numeric if shapes[str(key[:-1])] > 1 and rows[name].isna().all()]
        ending = "".join(f"-{_slug(value)}" for value in key[:-1]) + "".join(
            f"-without-{_slug(name)}" for name in lacks
        )
        for column in heat_map.COLUMNS:
            if _says_something(rows, column):
                draws = partial(heat_map.draw_heat_map, rows, varying[0], varying[1], column, varying[2:])
                pictures.add(f"heat_map-{_slug(column)}{ending}", draws, study.finished, study.target)


def _is_numeric(knob: "pd.Series[object]") -> bool:
    return pd.api.types.is_numeric_dtype(knob) and not pd.api.types.is_bool_dtype(knob)


def _says_something(rows: pd.DataFrame, column: str) -> bool:
    if column not in rows:
        return False
    if column in TO_TARGET and "not_reached" in rows and rows["not_reached"].any():
        return True
    if rows[column].isna().all():
        return False
    if column == "arrived":
        return not rows["arrived"].equals(rows["scheduled"])
    return column != "miss_rate" or bool((rows[column] > 0).any())


def _slug(value: object) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", str(value).lower()).strip("-")
