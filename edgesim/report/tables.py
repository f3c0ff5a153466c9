"""Tables of the page: those that ``edgesim show`` prints, as HTML, and the whole table of a study's differences."""

from collections.abc import Collection, Sequence
from html import escape
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from edgesim.base.plain_text import printable
from edgesim.screen.console import PlainConsole
from edgesim.tables.show_differences import effect_text, ends_text
from edgesim.tables.table_text import p_value, plain


class Collector(PlainConsole):
    """A console that collects the tables and lines printed to it."""

    def __init__(self) -> None:
        super().__init__(width=200)
        self.printed: list[Table | str] = []

    @override
    def print(self, *objects: Any, **_: Any) -> None:
        self.printed += [item if isinstance(item, Table) else str(item) for item in objects]


def html_of(printed: list[Table | str]) -> str:
    """Tables as HTML, and lines between them as paragraphs."""
    return "\n".join(_table(item) if isinstance(item, Table) else f"<p>{text(item)}</p>" for item in printed)


def text(value: object) -> str:
    """Escape a text for HTML; control characters are escaped, too."""
    return escape(printable(str(value)))


def table_html(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Sequence[bool],
    ends: Collection[int] = (),
) -> str:
    """A table whose columns hold ``texts`` or numbers; the first names its row, and a rule lies below rows ``ends``."""
    head = "".join(f'<th scope="col">{text(heading).replace(chr(10), "<br>")}</th>' for heading in headings)
    names = _names(headings)
    body = []
    for i, row in enumerate(rows):
        # Narrow screens show rows as lists, each cell beside its heading.
        cells = [
            f'<td{"" if is_text else " class=number"} data-of="{text(name)}">{text(cell)}</td>'
            for cell, is_text, name in zip(row[1:], texts[1:], names[1:], strict=True)
        ]
        end = " class=end" if i in ends else ""
        body.append(f'<tr{end}><th scope="row">{text(row[0])}</th>{"".join(cells)}</tr>')
    top = f"<thead><tr>{head}</tr></thead>" if any(headings) else ""
    caption_html = f"<caption>{text(caption)}</caption>" if caption else ""
    return f'<div class="wide" tabindex="0"><table>{caption_html}{top}<tbody>{"".join(body)}</tbody></table></div>'


def _names(headings: Sequence[str]) -> list[str]:
    """Headings in one line each; one whose first line is empty stands under that of the column before it."""
    names, group = [], ""
    for heading in headings:
        above, lines, last = heading.rpartition("\n")
        group = (above or group) if lines else ""
        names.append(f"{group} {last}".strip())
    return names


def differences_html(table: pd.DataFrame, reference: str) -> str:
    """Every comparison of a study with its reference, with plain and corrected interval and p; empty without any."""
    if table.empty:
        return ""
    knobs = list(table.columns[: table.columns.get_loc("measure")])
    headings = [*knobs, "measure", "reading", "pairs", "difference", "95 %", "corrected", "test", "p", "corrected p"]
    texts = [heading in (*knobs, "measure", "reading", "test") for heading in headings]
    rows = [
        [*(plain(row[knob]) for knob in knobs), row["measure"], row["reading"], str(row["pairs"])]
        + [effect_text(row, "{:+.4g}"), ends_text(row), ends_text(row, "_holm")]
        + [row["test"], p_value(row["p"]), p_value(row["p_holm"])]
        for row in table.to_dict("records")
    ]
    return table_html(f"Differences to {reference}, seed by seed", headings, rows, texts)


def _table(table: Table) -> str:
    columns = [[_plain(cell) for cell in column.cells] for column in table.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    headings = [_plain(column.header) if table.show_header else "" for column in table.columns]
    texts = [column.justify != "right" for column in table.columns]
    ends = {i for i, row in enumerate(table.rows) if row.end_section}
    return table_html(_plain(table.title or ""), headings, rows, texts, ends)


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
