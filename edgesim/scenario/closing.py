"""The end of a scenario: its study's tables and figures; status 1 where a run failed."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from edgesim.analysis.differences import differences_table
from edgesim.analysis.runs import Knob, read_study, value_text
from edgesim.api.study import failures
from edgesim.plots.formats import USUAL_FORMATS, Formats
from edgesim.plots.gallery import draw, draw_against
from edgesim.screen.console import PlainConsole
from edgesim.tables.show import print_study
from edgesim.tables.show_differences import print_differences


def conclude(
    study_folder: Path,
    against: Sequence[tuple[str, Knob]] = (),
    answers: Sequence[str] = (),
    formats: Formats = USUAL_FORMATS,
    whole: bool = True,
) -> None:
    """Print a study's tables and draw its figures into ``plots/`` of its folder; ends with status 1 if a run failed.

    The differences of the policies from the reference policy are written to ``differences-policy.csv``. For every pair
    (knob, reference value) in ``against``, the paired differences of the other values from it are printed, drawn and
    written to ``differences-KNOB.csv``, or ``differences-KNOB-REFERENCE.csv`` where a knob stands there several times.
    ``answers`` are findings, one or two sentences each, printed at the end. ``whole`` is as of `print_study`.
    """
    console = PlainConsole()
    differences_table(study_folder, "policy", read_study(study_folder).reference, write=True)
    print_study(study_folder, console, whole)
    knobs = [knob for knob, _ in against]
    for knob, reference in against:
        called = f"{knob}-{reference}" if knobs.count(knob) > 1 else knob
        _compare(study_folder, knob, reference, called, console, formats)
    with console.status("drawing the figures"):
        figures = draw([study_folder], study_folder / "plots", formats=formats)
    console.print(f"{len(figures)} figures in {study_folder / 'plots'}; table in {study_folder / 'summary.csv'}")
    for answer in answers:
        console.print(answer, highlight=False)
    stop_if_failed(study_folder, console)


def stop_if_failed(study_folder: Path, console: Console | None = None) -> None:
    """Exit with status 1 and a line about the first failure if a run of the study did not finish."""
    console = console or PlainConsole()
    if failed := failures(study_folder):
        line = f"{len(failed)} of the runs did not finish, the first one: {failed[0]}"
        console.print(line, highlight=False)
        sys.exit(1)


def _compare(study_folder: Path, knob: str, reference: Knob, called: str, console: Console, formats: Formats) -> None:
    study = read_study(study_folder)
    values = {str(entry.run.knobs[knob]) for entry in study.planned if knob in entry.run.knobs}
    if str(reference) not in values:
        known = f"the values of {knob} are {', '.join(sorted(values))}"
        known = known if values else f"knobs: {', '.join(study.knob_names)}"
        console.print(f"No run has {knob} = {reference} to compare the others with; {known}.", highlight=False)
        return
    table = differences_table(study_folder, knob, reference, write=True, called=called)
    if not table.empty:
        print_differences(table, value_text(reference), console)
        draw_against(study, knob, reference, study_folder / "plots", called, formats)
