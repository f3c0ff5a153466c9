"""What pages show: examples, sections, cells of tables, and words for numbers of the committed rows of studies."""

import itertools
import re
import textwrap
from pathlib import Path

from edgesim.analysis.statistics import mean_interval

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SEEDS = DOCS / "papers/seeds"
HANDBOOK = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def examples(page, *languages):
    """Texts of a page's fenced examples in some languages, "" for none."""
    fenced = re.findall(r"^( *)```(\w*)\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(text) for _, language, text in fenced if language in languages]


def section(title, page="results.md"):
    """Text of a section, with its lines."""
    return (DOCS / page).read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def table(title, labels, number=0, page="results.md"):
    """Cells of a table of a section, row by row; an empty one of the first ``labels`` is that of the row above."""
    lines = [part.splitlines() for part in section(title, page).split("\n\n") if part.startswith("| ")][number]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    for above, row in itertools.pairwise(cells):
        row[:labels] = [own or old for own, old in zip(row[:labels], above[:labels], strict=True)]
    return cells


def not_said(title, sentences, page="results.md"):
    """Those of the sentences that a section does not have, however its lines are broken."""
    text = " ".join(section(title, page).split())
    return [sentence for sentence in sentences if sentence not in text]


def spanning(values, form="{:.2f}"):
    """The least and the largest value."""
    return f"{form.format(min(values))} to {form.format(max(values))}"


def half_interval(values):
    """Half of the interval of the mean of the seeds."""
    return mean_interval(values).high - values.mean()


def pm(values, form):
    """Mean and half interval of the seeds."""
    return f"{form.format(values.mean())} ± {form.format(half_interval(values))}"
