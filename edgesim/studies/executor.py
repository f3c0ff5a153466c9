"""The interface of executors, which carry out the runs of studies (`pool`, `on_ray`), and how each runs one of them."""

import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from edgesim.base.errors import EdgesimError
from edgesim.base.lease import Taken
from edgesim.base.processes import UNREAD
from edgesim.config import RunConfig
from edgesim.folder.checkpoints import saved_round
from edgesim.folder.state import state_of
from edgesim.screen.progress import Message
from edgesim.simulation import composition as simulation
from edgesim.simulation.run_progress import Listener, extent
from edgesim.studies.ledger import fingerprint


@dataclass(frozen=True)
class RunOrder:
    """A run that is to be carried out."""

    config: RunConfig
    folder: Path
    target: float | None
    """Accuracy that its start model must not have reached."""
    fresh: bool
    """Whether the run is repeated from its start, even if it is finished."""
    until: int | None = None
    """The round after which it is saved and pauses; None: it runs to its end."""
    fingerprint: tuple[int, ...] | None = None
    """`fingerprint` of its folder when the study began: a run that has failed since then was tried by another process
    and is not tried again. None: it is tried in any case."""


@dataclass(frozen=True)
class Ending:
    """End of one run of a study."""

    status: str
    """``finished``, ``failed``, ``interrupted`` or ``paused``; ``elsewhere`` where another process works on it."""
    reason: str
    reused: bool = False
    """Whether the run was finished before and not run again."""
    fields: tuple[str, ...] = ()
    """``fields`` of the `EdgesimError` with which the run ended."""


@dataclass(frozen=True)
class Lost:
    """The end of a run's process without an `Ending`; the run can be resumed from its last checkpoint."""

    reason: str


News = Message | Ending | Lost


class Workers(Protocol):
    """Processes that carry out runs; each order ends with one `Ending` or `Lost`."""

    def has_room(self) -> bool:
        """Whether an order that is handed out now would begin at once."""

    def hand_out(self, order: RunOrder) -> None:
        """Begin to carry out an order, without waiting for it."""

    def news(self, timeout_s: float) -> list[tuple[str, News]]:
        """Messages and endings since the last call, by the name of the run's folder; waits ``timeout_s`` at most."""

    def ask_to_end(self) -> None:
        """Ask all runs to save a checkpoint and end; `news` still returns their endings."""

    def close(self) -> None:
        """Kill all processes."""


class Executor(Protocol):
    """Executor of the runs of studies."""

    tries: ClassVar[int]
    """Most starts of a run whose process is lost each time."""

    def connected(self) -> AbstractContextManager[None]:
        """Context in which `open` may be called; raises `EdgesimError` within seconds if it cannot be provided."""

    def open(self, out: Path, count: int, jobs: int | None, again: bool) -> Workers:
        """Workers for ``count`` runs of the study in ``out``, ``jobs`` at a time or as many as there is room for.

        ``again``: these runs were lost before. Raises `EdgesimError`.
        """


def refuse_failed(order: RunOrder) -> None:
    """Raise `EdgesimError` if another process has tried the run since the study began, and it failed.

    The caller holds the lease of the run's folder.
    """
    if order.fingerprint is not None and fingerprint(order.folder) != order.fingerprint:
        state = state_of(order.folder, is_mine=True)
        if state.status == "failed":
            raise EdgesimError(state.reason)


def run_one(order: RunOrder, cores: int, send: Callable[[Message], None]) -> Ending:
    """Carry out a run on ``cores`` cores and ``send`` its messages; every error becomes an `Ending`."""
    listener = Listener(order.folder.name, send, extent(order.config).unit)
    try:
        listener.on_start("start")
        result = simulation.run(
            order.config,
            order.folder,
            listener.on_round,
            listener.on_start,
            order.target,
            cores,
            listener.on_note,
            order.fresh,
            keep_failure=True,
            until=order.until,
            on_lease=lambda: refuse_failed(order),
        )
    except Taken as taken:
        return Ending("elsewhere", str(taken))
    except EdgesimError as error:
        return Ending("failed", str(error), fields=error.fields)
    except KeyboardInterrupt:
        if order.until is not None and saved_round(order.folder) == order.until:
            return Ending("paused", f"behind round {order.until}")
        return Ending("interrupted", "stopped as the study was")
    except BrokenPipeError:
        return Ending("interrupted", UNREAD)
    except Exception as error:
        traceback.print_exc()
        return Ending("failed", f"an error in the program: {error!r}")
    listener.on_end()
    if result.status != "finished":
        return Ending(result.status, result.reason)
    return Ending("finished", result.reason, result.reused)
