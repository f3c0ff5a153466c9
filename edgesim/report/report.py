"""The report of a run folder or a study folder."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgesim.analysis.differences import differences_table
from edgesim.analysis.runs import RunFolder, StudyFolder, has_runs, read_study, runs_of
from edgesim.base.errors import EdgesimError
from edgesim.plots.groups import Series
from edgesim.report import charts
from edgesim.report.about import about, repeat_run, repeat_study
from edgesim.report.page import page, waiting_page
from edgesim.report.run_data import MOST_BARS, run_data
from edgesim.report.series import series_of
from edgesim.report.tables import Collector, differences_html, html_of, text
from edgesim.studies.ledger import read_any_ledger
from edgesim.tables.show import print_run, print_study
from edgesim.tables.show_ledger import headline, ledger_table

MOST_RUNS = 12
"""Runs of a study of which the page holds every bar."""


def live_page(folder: Path, refresh_s: int) -> str:
    """The report of a folder below a row for each of its runs; these alone where there is nothing to report yet.

    The page loads itself again until all runs have ended.
    """
    ledger = read_any_ledger(folder)
    again_s = None if all(state.ended for state in ledger.values()) else refresh_s
    rows = html_of([ledger_table(ledger)])
    try:
        return report_html(folder, again_s, rows)
    except EdgesimError as error:
        body = f"{html_of([headline(folder, ledger)])}{rows}<p>No report yet: {text(error)}</p>"
        return waiting_page(folder.resolve().name, body, again_s)


def report_html(folder: Path, refresh_s: int | None = None, rows: str = "") -> str:
    """The page of a run, also of one that goes on or was killed, or of a study.

    With ``refresh_s`` the page loads itself again; ``rows`` is HTML below the line that says how far the runs are.

    Raises `EdgesimError` for a folder that is neither, a run without a finished round, and a study without a finished
    run.
    """
    ledger = read_any_ledger(folder)
    unfinished = any(state.status != "finished" for state in ledger.values())
    warning = '<p class="warning">Not all is finished; the page shows what is.</p>' * unfinished
    now = warning + html_of([headline(folder, ledger)]) + rows
    if has_runs(folder):
        return _of_study(read_study(folder), refresh_s, now)
    return _of_run(folder, refresh_s, now)


def _of_run(folder: Path, refresh_s: int | None, now: str) -> str:
    (run,) = runs_of([folder])
    console = Collector()
    print_run(folder, console)
    data = _data([Series(str(run.knobs["policy"]), (run,))], [run], None, folder.resolve().name)
    return page(folder.resolve().name, now + about(run, [repeat_run(run)]), html_of(console.printed), data, refresh_s)


def _of_study(study: StudyFolder, refresh_s: int | None, now: str) -> str:
    console = Collector()
    print_study(study.folder, console)
    series = series_of(study.finished)
    tables = html_of(console.printed)
    if compared := study.compared_knob:
        table = differences_html(differences_table(study.folder, compared[0], str(compared[1])), str(compared[1]))
        summary = "<summary>all differences, with corrected intervals</summary>"
        tables += f"<details>{summary}{table}</details>" if table else ""
    first = series[0].runs[0]
    about_run = about(first, [repeat_study(study), f"edgesim report {shlex.quote(str(first.folder))} --open"])
    shown: list[RunFolder] = []
    rows = 0
    for run in (line.runs[0] for line in series[:MOST_RUNS]):
        rows += len(run.activities)
        if shown and rows > MOST_BARS:
            break
        shown.append(run)
    data = _data(series, shown, study.target, study.name)
    return page(study.name, now + about_run, tables, data, refresh_s)


def _data(series: Sequence[Series], shown: Sequence[RunFolder], target: float | None, name: str) -> dict[str, Any]:
    """Data that the page draws; of a study the pictures of single runs show the first run of each series."""
    runs = sum(len(line.runs) for line in series)
    note = "" if runs == 1 else f"This page holds {len(shown)} of {runs} runs: the first seed of each line above"
    if note:
        note += f" up to {len(shown)} lines" if len(shown) < len(series) else ""
        note += ". The pictures of any other: edgesim report RUN."
    several = len(series) > 1
    drawn = charts.accuracy_charts(series, target) | charts.run_charts()
    return {
        "name": name,
        "note": note,
        "bits_unit": charts.unit_of_bits(series)[1],
        "averaged": any(len(line.runs) > 1 for line in series),
        "series": charts.colors_of(series),
        "runs": [run_data(run, run.folder.resolve().name) for run in shown],
        "charts": drawn | ({"waste": charts.waste_chart(series)} if several else {}),
    }
