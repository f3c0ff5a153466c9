"""Builds the handbook: ``python docs/build.py`` writes ``docs/knobs.md``, ``docs/fields.md`` and the tables beside
papers anew, and the site into ``site/``.

The site is made of copies of README, CONTRIBUTING, ``docs/`` and ``plots/`` in ``build/handbook``: there they lie as in
the repository, so that the same relative links hold in both. Notebooks become pages of the same name, with what they
show, and links to them lead there. Nothing is fetched and no notebook is run: pages, figures and docstrings of this
checkout are all that is read.
"""

import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat

from edgesim.commands.explain import Key, explained, sections

ROOT = Path(__file__).parents[1]
DOCS, PLOTS = ROOT / "docs", ROOT / "plots"

_INTRODUCTION = """# Every knob

A config is a TOML file with what differs from the defaults:

```toml
{example}```

Units, bounds, defaults and meanings below are made from `edgesim/config.py` and the options of every policy, algorithm
and law by `python docs/build.py`; `edgesim explain KEY` prints those of one key. Keys stand in the table of the config
that heads their section, those of *Whole runs* before the first one. A misspelt key, a value out of bounds, a deadline
that no device can meet or a band too narrow for any is refused before anything runs, with one line that says what would
suffice. `learning.training = "none"` simulates the same events without training anything (and without importing torch),
in milliseconds a round, for every policy that does not look at losses or gradients.
"""


def knobs() -> str:
    """The page of all keys of a config, in Markdown."""
    parts = [_INTRODUCTION.replace("{example}", (DOCS / "example.toml").read_text())]
    for section in ("", *sections()):
        keys = explained(section) if section else explained_at_the_top()
        parts.append(f"## {f'[{section}]' if section else 'Whole runs'}\n")
        for owner, own in groupby(keys, key=lambda key: key.owner):
            if owner:
                parts.append(f"### Options of {owner}\n")
            parts += ["| key | type, unit, bounds, default | meaning |", "| --- | --- | --- |"]
            parts += [_row(key) for key in own]
            parts.append("")
    return "\n".join(parts)


def explained_at_the_top() -> list[Key]:
    """The keys that stand in no table."""
    from edgesim.config import RunConfig

    names = [name for name in RunConfig.model_fields if name not in sections()]
    return [key for name in names for key in explained(name) if key.name == name]


def _row(key: Key) -> str:
    facts = key.line().partition(": ")[2].replace("|", "\\|")
    meaning = key.meaning().replace("``", "`").replace("|", "\\|")
    return f"| `{key.name.rpartition('.')[2]}` | {facts} | {meaning} |"


def copy_pages(folder: Path) -> None:
    """Copy README and CONTRIBUTING, the handbook's pages and the gallery into a folder that holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    for pages in (DOCS, PLOTS):
        shutil.copytree(pages, folder / pages.name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for page in ("README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / page, folder)
    as_page = runpy.run_path(str(DOCS / "notebooks.py"))["page"]
    for notebook in folder.rglob("*.ipynb"):
        text, figures = as_page(nbformat.read(notebook, as_version=4), notebook.stem)
        notebook.with_suffix(".md").write_text(text)
        for name, figure in figures.items():
            (notebook.parent / name).write_bytes(figure)
        notebook.unlink()
    for page in folder.rglob("*.md"):
        page.write_text(re.sub(r"(\]\([^)\s]+)\.ipynb\)", r"\1.md)", page.read_text()))


class _Links(HTMLParser):
    """Collects what a page of HTML refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if name in ("href", "src") and value]


def dead_files(site: Path) -> list[str]:
    """Links of a site to files that it does not have, as ``PAGE: LINK``; zensical itself looks at pages only."""
    dead = []
    for page in sorted(site.rglob("*.html")):
        parser = _Links()
        parser.feed(page.read_text())
        for link in parser.links:
            parts = urlsplit(link)
            base = site if parts.path.startswith("/") else page.parent
            if not parts.netloc and not parts.scheme and not (base / unquote(parts.path).lstrip("/")).exists():
                dead.append(f"{page.relative_to(site)}: {link}")
    return dead


def main() -> None:
    """Write the pages of knobs and of fields, and build the site; ends with 1 where a link of it is dead."""
    (DOCS / "knobs.md").write_text(knobs())
    (DOCS / "fields.md").write_text(runpy.run_path(str(DOCS / "fields.py"))["page"]())
    runpy.run_path(str(DOCS / "beside_papers.py"))["main"]()
    copy_pages(ROOT / "build/handbook")
    if status := subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT).returncode:
        sys.exit(status)
    if dead := dead_files(ROOT / "site"):
        sys.exit("dead links: " + ", ".join(dead))


if __name__ == "__main__":
    main()
