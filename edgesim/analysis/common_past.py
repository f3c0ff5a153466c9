"""The past that a fork has in common with the run that it was forked from, and with its other forks."""

import math
from pathlib import Path

from edgesim.analysis.runs import RunFolder


def common_rounds(one: RunFolder, other: RunFolder) -> int:
    """Rounds from the first on that two runs have in common, since one is a fork of the other, or both of a third.

    0 where neither is. The folders of what they were forked from are looked for where they were then.
    """
    mine, theirs = _line(one), _line(other)
    shared = [min(mine[folder], theirs[folder]) for folder in mine.keys() & theirs.keys()]
    found = max(shared, default=0.0)
    return int(found) if math.isfinite(found) else 0


def _line(run: RunFolder) -> dict[Path, float]:
    """A run and what it was forked from, each with the last round in common with it."""
    line, last = {run.folder.resolve(): math.inf}, math.inf
    while (fork := run.fork) is not None:
        run, last = RunFolder(Path(fork.parent), {}, run.seed), min(last, fork.round)
        if run.folder.resolve() in line:
            break
        line[run.folder.resolve()] = last
        if not (run.folder / "run.json").is_file():
            break
    return line
