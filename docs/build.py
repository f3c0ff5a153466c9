"""Builds the handbook: ``python docs/build.py`` writes ``docs/knobs.md`` anew and the site into ``site/``.

Nothing is fetched: pages, figures and docstrings of this checkout are all that is read.
"""

import subprocess
import sys
from itertools import groupby
from pathlib import Path

from edgesim.terminal.explain import Key, explained, sections

DOCS = Path(__file__).parent

_INTRODUCTION = """# Every knob

Made from `edgesim/config.py` and the options of every policy, algorithm and law by `python docs/build.py`; `edgesim
explain KEY` tells one of them. Keys stand in the table of the config that heads their section, those of *Whole runs*
before the first one.
"""


def knobs() -> str:
    """The page of all keys of a config, in Markdown."""
    parts = [_INTRODUCTION]
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
    told = key.told().replace("``", "`").replace("|", "\\|")
    return f"| `{key.name.rpartition('.')[2]}` | {facts} | {told} |"


def main() -> None:
    """Write the page of knobs and build the site; ends with zensical's status."""
    (DOCS / "knobs.md").write_text(knobs())
    sys.exit(subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=DOCS.parent).returncode)


if __name__ == "__main__":
    main()
