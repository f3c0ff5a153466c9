"""How far a run is, as its folder says: nothing else is written down."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edgesim.base.errors import EdgesimError
from edgesim.base.lease import Holder, standing
from edgesim.folder.records import ends, read_run

Status = Literal["planned", "running", "finished", "pruned", "failed", "stopped", "lost", "damaged"]

STATUSES: tuple[Status, ...] = ("finished", "pruned", "running", "planned", "stopped", "lost", "failed", "damaged")


@dataclass(frozen=True)
class RunState:
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
    """Rounds on disk or, if only ``stop_at_s`` ends the run, deadlines passed.

    This and what follows is filled in by `edgesim.studies.ledger`.
    """
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


def state_of(folder: Path, config: Mapping[str, Any] | None = None, *, is_mine: bool = False) -> RunState:
    """How far the run of a folder is, that is to have a ``config``; the folder need not exist.

    Where the lease ``is_mine``, this process's own: how far the run was when it took it.
    """
    try:
        lease = None if is_mine else standing(folder)
        if lease is not None and lease.is_held:
            return RunState("running", "", lease.holder, lease.silent_s)
        holder = None if lease is None else lease.holder
        if not (folder / "run.json").is_file():
            return RunState("planned") if lease is None else RunState("lost", "", holder)
        run = read_run(folder)
    except EdgesimError as error:
        return RunState("damaged", str(error))
    reason, status = str(run.get("reason", "")).partition("\n")[0], run["status"]
    if status == "finished" and config is not None and run.get("ends", ends(config)) != ends(config):
        return RunState("planned", "is to end later")
    if status != "finished" and (status == "running" or lease is not None):
        return RunState("lost", "", holder)
    known: dict[str, Status] = {"finished": "finished", "pruned": "pruned", "interrupted": "stopped"}
    return RunState(known.get(status, "failed"), reason)
