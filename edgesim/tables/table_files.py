"""A table of texts as Markdown, and as LaTeX for the package booktabs."""

from collections.abc import Sequence

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}"} | {
    character: f"\\{character}" for character in "&%$#_{}"
}


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
