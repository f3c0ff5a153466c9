"""How far the runs of a study are, as their folders say: nothing else is written down."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edgesim.analysis.runs import is_shorter, read_study
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import Holder, Standing, standing
from edgesim.folder.records import read_run

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
    """How far each run of a study is, by the name of its folder, in the plan's order.

    Raises `EdgesimError` where the plan is missing or malformed.
    """
    planned = read_study(folder, status=lambda *_: "").planned
    return {entry.run.folder.name: state_of(entry.run.folder, entry.config) for entry in planned}
