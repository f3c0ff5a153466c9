"""State of a run, derived from its folder and its lease."""

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
class FolderState:
    """State of a run: its status and its progress."""

    status: Status
    """``stopped``: it was asked to end; ``lost``: its process is gone; ``pruned``: a tuning gave it up. All of these
    resume from their last checkpoint."""
    reason: str = ""
    """Why the run failed or cannot be read, as one line."""
    holder: Holder | None = None
    """The process that works on the run, or did before it was lost."""
    silent_s: float | None = None
    """Seconds since the last sign of life of ``holder``, where it was looked for."""
    done: int = 0
    """Rounds on disk.

    This and what follows is filled in by `edgesim.studies.ledger`.
    """
    of: int | None = None
    """Rounds at the run's end; None where only ``stop_at_s`` ends it, or the config does not determine it."""
    of_s: float | None = None
    """Simulated seconds at the run's end, where only ``stop_at_s`` ends it."""
    accuracy: float | None = None
    """Test accuracy of the last model tested."""
    t_s: float = 0.0
    """Simulated seconds at the end of the last round on disk."""

    @property
    def ended(self) -> bool:
        """Whether the run stays as it is unless a user starts it again."""
        return self.status in ("finished", "pruned", "failed", "damaged")


def state_of(folder: Path, config: Mapping[str, Any] | None = None, *, is_mine: bool = False) -> FolderState:
    """State of the run in a folder, which need not exist, compared with the ``config`` that it is to have.

    With ``is_mine`` this process holds the lease, and the state is that before it took it.
    """
    try:
        lease = None if is_mine else standing(folder)
        if lease is not None and lease.is_held:
            return FolderState("running", "", lease.holder, lease.silent_s)
        holder = None if lease is None else lease.holder
        if not (folder / "run.json").is_file():
            return FolderState("planned") if lease is None else FolderState("lost", "", holder)
        run = read_run(folder)
    except EdgesimError as error:
        return FolderState("damaged", str(error))
    reason, status = str(run.get("reason", "")).partition("\n")[0], run["status"]
    if status == "finished" and config is not None and run.get("ends", ends(config)) != ends(config):
        return FolderState("planned", "is to end later")
    if status != "finished" and (status == "running" or lease is not None):
        return FolderState("lost", "", holder)
    known: dict[str, Status] = {"finished": "finished", "pruned": "pruned", "interrupted": "stopped"}
    return FolderState(known.get(status, "failed"), reason)
