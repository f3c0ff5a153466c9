"""Builds the handbook: ``python docs/build.py`` writes ``docs/knobs.md`` anew and the site into ``site/``.

Figures of a quick run (``docs/gallery.toml``) are drawn into ``docs/figures/built``, which git leaves out. Nothing is
fetched: pages, figures and docstrings of this checkout are all that is read.
"""

import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

import edgesim
from edgesim.terminal.explain import Key, explained, sections

DOCS = Path(__file__).parent

BUILT = ("gantt", "band_use", "delay_cdf", "partition", "energy", "battery")
"""Figures of `draw`, those of them that the gallery shows from a single run."""

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


def draw(out: Path) -> None:
    """Draw the figures `BUILT` at 150 dpi, from a run that is simulated for them."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = edgesim.run(DOCS / "gallery.toml", Path(folder) / "gallery", quiet=True)
        for name in BUILT:
            run.plot(name, round=3).savefig(out / f"{name}.png", dpi=150)


def main() -> None:
    """Write the page of knobs, draw the figures and build the site; ends with zensical's status."""
    draw(DOCS / "figures/built")
    (DOCS / "knobs.md").write_text(knobs())
    sys.exit(subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=DOCS.parent).returncode)


if __name__ == "__main__":
    main()
