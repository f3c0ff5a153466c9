"""How far every run of a study is while it goes on, read from the run folders alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgesim.analysis.runs import is_study, read_study
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.engine.server import Progress
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.simulation.run_progress import expected_rounds, rounds_done
from edgesim.studies.ledger import State, state_of

ENDED = frozenset({"finished", "pruned", "failed", "damaged"})
"""Statuses of runs that nothing goes on with by itself."""


@dataclass(frozen=True)
class Watched:
    """A run as it is seen from outside."""

    name: str
    state: State
    done: int = 0
    """Rounds on disk or, if only ``stop_at_s`` ends the run, deadlines passed."""
    of: int | None = None
    """What ``done`` is at the end; None where the config cannot tell."""
    accuracy: float | None = None
    """The last one tested."""
    t_s: float = 0.0
    """Simulated seconds at the end of the last round on disk."""

    @property
    def ended(self) -> bool:
        """Whether nothing goes on with the run by itself."""
        return self.state.status in ENDED


class Watch:
    """Looks at the runs of a study folder, or at the run of a run folder, again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._progress: dict[Path, tuple[object, Progress | None]] = {}
        """By table of rounds: which version of the file was read, and what its last row says."""
        self._configs: dict[str, tuple[Mapping[str, Any], Any]] = {}

    @property
    def is_study(self) -> bool:
        """Whether the folder is a study's."""
        return is_study(self.folder)

    def look(self) -> list[Watched]:
        """All runs as they are now, in the plan's order.

        Raises `EdgesimError` for a folder that is neither a study's nor a run's, and for a damaged plan.
        """
        if self.is_study:
            planned = read_study(self.folder, status=lambda *_: "").planned
            return [self._run(entry.run.folder, entry.config) for entry in planned]
        if not (self.folder / "run.json").is_file():
            raise EdgesimError(f"{self.folder}: {self._why_neither()}; give a study folder or a run folder")
        read_run(self.folder)
        return [self._run(self.folder, None)]

    def _why_neither(self) -> str:
        if self.folder.is_dir():
            return "holds neither plan.json nor run.json"
        return "is a file" if self.folder.exists() else "no such folder"

    def _run(self, folder: Path, planned: Mapping[str, Any] | None) -> Watched:
        state, name = state_of(folder, planned), folder.resolve().name
        try:
            values = read_config(folder) if planned is None else planned
            known = self._configs.get(name)
            if known is None or known[0] != values:
                known = self._configs[name] = (values, parse(values, name))
            config = known[1]
            got = self._last_round(folder)
        except EdgesimError:
            # A folder of a planned run may not exist yet, and the state tells what is wrong with a damaged one.
            return Watched(name, state)
        of = expected_rounds(config) or None
        if got is None:
            return Watched(name, state, of=of)
        return Watched(name, state, rounds_done(config, got), of, got.accuracy, got.t_s)

    def _last_round(self, folder: Path) -> Progress | None:
        """The last round on disk; None before the first."""
        for path in (folder / "rounds.parquet", folder / "rounds.arrow"):
            try:
                facts = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                # Asked for at once, since a run that ends removes the one when it has the other.
                continue
            version = (facts.st_mtime_ns, facts.st_size)
            if self._progress.get(path, (None,))[0] != version:
                self._progress[path] = (version, _last(read_table(folder, "rounds")))
            return self._progress[path][1]
        return None


def _last(rounds: Any) -> Progress | None:
    if rounds.empty:
        return None
    tested = rounds["test_accuracy"].dropna()
    accuracy = float(tested.iloc[-1]) if len(tested) else None
    return Progress(int(rounds["round"].iloc[-1]), float(rounds["t_end_s"].iloc[-1]), accuracy)


def is_over(runs: Sequence[Watched]) -> bool:
    """Whether nothing of a study is going to happen by itself any more."""
    return all(run.ended for run in runs)
