"""The past that a fork has in common with the run that it was forked from, and with its other forks."""

import math
from pathlib import Path

from edgesim.analysis.runs import RunFolder


def common_rounds(first: RunFolder, second: RunFolder) -> int:
    """Number of rounds that two runs have in common, since one is a fork of the other or both are forks of a third.

    0 if neither holds. The folders of the parents are looked for where they were at the time of the fork.
    """
    mine, theirs = _line(first), _line(second)
    shared = [min(mine[folder], theirs[folder]) for folder in mine.keys() & theirs.keys()]
    rounds = max(shared, default=0.0)
    return int(rounds) if math.isfinite(rounds) else 0


def _line(run: RunFolder) -> dict[Path, float]:
    """Folders of a run and of its parents, each with the last round in common with the run."""
    line, last = {run.folder.resolve(): math.inf}, math.inf
    while (fork := run.fork) is not None:
        run, last = RunFolder(Path(fork.parent), {}, run.seed), min(last, fork.round)
        if run.folder.resolve() in line:
            break
        line[run.folder.resolve()] = last
        if not (run.folder / "run.json").is_file():
            break
    return line
