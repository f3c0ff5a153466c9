"""Counts the words of the handbook, page by page: ``python docs/words.py``.

A word is what stands between two spaces and has a letter: figures, signs and the bars of tables are none. Not counted
are fenced examples, what a program writes (``knobs.md``, ``fields.md``, and what stands between ``<!-- Written by ...
-->`` and ``<!-- End -->``), targets of links, directives that docstrings take the place of, and the pages of
``docs/papers/``. Tutorials are notebooks and are not counted.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRITTEN_BY_PROGRAMS = ("knobs.md", "fields.md")
MOST = 30_000
"""Words that the README and the handbook may have together."""

_NO_PROSE = re.compile(
    r"^ *```.*?^ *```|<!-- Written by .*?<!-- End -->|(?<=\])\([^)]*\)|^::: [^\n]*\n(?: +[^\n]*\n)*",
    re.DOTALL | re.MULTILINE,
)


def words(text: str) -> int:
    """How many words a page in Markdown has."""
    return sum(bool(re.search(r"[^\W\d_]", word)) for word in _NO_PROSE.sub(" ", text).split())


def by_page(root: Path = ROOT) -> dict[str, int]:
    """Words of the README and of each page of the handbook that is written by hand, in a checkout."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return {
        str(page.relative_to(root)): words(page.read_text()) for page in pages if page.name not in WRITTEN_BY_PROGRAMS
    }


def main() -> None:
    """Print the words of each page and of all together."""
    counts = by_page()
    for page, count in counts.items():
        print(f"{count:7,}  {page}")
    print(f"{sum(counts.values()):7,}  of at most {MOST:,}")


if __name__ == "__main__":
    main()
