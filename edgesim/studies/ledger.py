"""How far runs are, as their folders say: nothing else is written down."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from edgesim.analysis.runs import is_shorter, is_study, read_study
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import Holder, Standing, standing
from edgesim.base.migration import migrated
from edgesim.config_file import parse
from edgesim.engine.server import Progress
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.simulation.run_progress import expected_rounds, rounds_done

Status = Literal["planned", "running", "finished", "pruned", "failed", "stopped", "lost", "damaged"]

STATUSES: tuple[Status, ...] = ("finished", "pruned", "running", "planned", "stopped", "lost", "failed", "damaged")


@dataclass(frozen=True)
class State:
    """How far a run is."""

    status: Status
    """``stopped``: it was asked to end; ``lost``: its process is gone; ``pruned``: a tuning gave it up. All of these go
    on from what they saved."""
    reason: str = ""
    """One line: why it failed, or cannot be read."""
    holder: Holder | None = None
    """The process that works on it, or that did when it was lost."""
    silent_s: float | None = None
    """For how long that was not heard of, where it was looked for."""
    done: int = 0
    """Rounds on disk or, if only ``stop_at_s`` ends the run, deadlines passed. This and what follows: of a ledger."""
    of: int | None = None
    """What ``done`` is at the end; None where the config cannot tell."""
    accuracy: float | None = None
    """The last one tested."""
    t_s: float = 0.0
    """Simulated seconds at the end of the last round on disk."""

    @property
    def ended(self) -> bool:
        """Whether nothing goes on with the run by itself."""
        return self.status in ("finished", "pruned", "failed", "damaged")


def state_of(folder: Path, config: Mapping[str, Any] | None = None) -> State:
    """How far the run of a folder is, that is to have a ``config``; the folder need not exist."""
    try:
        lease = standing(folder)
    except EdgesimError as error:
        return State("damaged", str(error))
    return _state(folder, config, lease)


def state_without_lease(folder: Path) -> State:
    """As `state_of`, for the process that has the folder's lease: how far the run was when it took it."""
    return _state(folder, None, None)


def _state(folder: Path, config: Mapping[str, Any] | None, lease: Standing | None) -> State:
    if lease is not None and lease.is_held:
        return State("running", "", lease.holder, lease.silent_s)
    holder = None if lease is None else lease.holder
    if not (folder / "run.json").is_file():
        return State("planned") if lease is None else State("lost", "", holder)
    try:
        run = read_run(folder)
    except EdgesimError as error:
        return State("damaged", str(error))
    reason = str(run.get("reason", "")).partition("\n")[0]
    if is_shorter(run, config):
        return State("planned", "is to end later")
    if run["status"] == "finished":
        return State("finished", reason)
    if run["status"] == "running" or lease is not None:
        return State("lost", "", holder)
    if run["status"] == "pruned":
        return State("pruned", reason)
    return State("stopped" if run["status"] == "interrupted" else "failed", reason)


def told_of(folder: Path) -> tuple[int, ...]:
    """What is another one once anything else has been written of how far the run of a folder is; empty if nothing."""
    try:
        stat = os.stat(folder / "run.json")
    except OSError:
        return ()
    return stat.st_ino, stat.st_mtime_ns


def read_ledger(folder: Path) -> dict[str, State]:
    """How far each run of a study is, with its rounds, by the name of its folder, in the plan's order.

    Raises `EdgesimError` where the plan is missing or malformed.
    """
    planned = read_study(folder).planned
    return {entry.run.folder.name: _with_rounds(entry.run.folder, entry.config) for entry in planned}


def read_any_ledger(folder: Path) -> dict[str, State]:
    """As `read_ledger`, of a study's folder or of the one run of a run folder.

    Raises `EdgesimError` for a folder that is neither, and for a damaged plan.
    """
    if is_study(folder):
        return read_ledger(folder)
    read_run(folder)
    return {folder.resolve().name: _with_rounds(folder, None)}


def _with_rounds(folder: Path, planned: Mapping[str, Any] | None) -> State:
    state = state_of(folder, planned)
    try:
        config = parse(migrated(read_config(folder) if planned is None else planned), folder.name)
        last = _last_round(folder)
    except EdgesimError:
        # A folder of a planned run may not exist yet, and the state tells what is wrong with a damaged one.
        return state
    state = replace(state, of=expected_rounds(config) or None)
    if last is None:
        return state
    return replace(state, done=rounds_done(config, last), accuracy=last.accuracy, t_s=last.t_s)


def _last_round(folder: Path) -> Progress | None:
    """The last round on disk; None before the first."""
    for path in (folder / "rounds.parquet", folder / "rounds.arrow"):
        # Asked for at once, since a run that ends removes the one when it has the other.
        with suppress(FileNotFoundError, NotADirectoryError):
            facts = path.stat()
            return _last_row(path, facts.st_mtime_ns, facts.st_size)
    return None


@lru_cache(maxsize=2**14)
def _last_row(path: Path, _mtime_ns: int, _size: int) -> Progress | None:
    """The last row of a version of a table of rounds, which is read once by whoever looks again and again."""
    rounds = read_table(path.parent, "rounds")
    if rounds.empty:
        return None
    tested = rounds["test_accuracy"].dropna()
    accuracy = float(tested.iloc[-1]) if len(tested) else None
    return Progress(int(rounds["round"].iloc[-1]), float(rounds["t_end_s"].iloc[-1]), accuracy)
