"""The page of a study that goes on: how far its runs are, and the report of what is finished."""

from pathlib import Path

from rich.table import Table

from edgesim.base.errors import EdgesimError
from edgesim.report.page import waiting_page
from edgesim.report.report import report_html
from edgesim.report.tables import html_of, text


def live_page(folder: Path, standing: list[Table | str], refresh_s: int | None) -> str:
    """The report of a folder below what says how far its runs are; that alone where there is nothing to report yet.

    With ``refresh_s`` the page loads itself again.
    """
    now = html_of(standing)
    try:
        return report_html(folder, refresh_s, now)
    except EdgesimError as error:
        return waiting_page(folder.resolve().name, f"{now}<p>No report yet: {text(error)}</p>", refresh_s)
