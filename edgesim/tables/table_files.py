"""Tables in formats of other programs: CSV and JSON with all columns, Markdown, and LaTeX for the package booktabs."""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

TableFormat = Literal["table", "csv", "json", "latex", "markdown"]
TABLE_FORMAT_HELP = "table: for the terminal; csv, json: all columns; latex: for booktabs."

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}"} | {
    character: f"\\{character}" for character in "&%$#_{}"
}


def table_text(form: TableFormat, table: pd.DataFrame, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in a format other than ``table``: with all digits, or the texts of ``rows`` below ``headings``."""
    if form == "csv":
        return str(table.to_csv(index=False, lineterminator="\n"))
    if form == "json":
        return f"{table.to_json(orient='records', indent=1, double_precision=15)}\n"
    return latex(headings, rows) if form == "latex" else markdown(headings, rows)


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a README."""
    lines = [headings, ["---"] * len(headings), *rows]
    whole = [" | ".join(cell.replace("|", r"\|") for cell in line) for line in lines]
    return "".join(f"| {line} |\n" for line in whole)


def latex(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A ``tabular`` with booktabs' rules; the first column stands left, the others right."""
    lines = [" & ".join(_escaped(cell) for cell in line) + r" \\" for line in (headings, *rows)]
    begin = rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}"
    return "\n".join([begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"]) + "\n"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
