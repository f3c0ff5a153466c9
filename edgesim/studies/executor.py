"""What carries out the runs of a study: one is handed out, its news come back. `pool` is one, `on_ray` another."""

import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from edgesim.base.errors import EdgesimError
from edgesim.base.lease import Taken
from edgesim.config import RunConfig
from edgesim.folder.checkpoints import saved_round
from edgesim.folder.state import state_of
from edgesim.screen.progress import Message
from edgesim.simulation import composition as simulation
from edgesim.simulation.run_progress import Listener
from edgesim.studies.ledger import told_of


@dataclass(frozen=True)
class RunOrder:
    """A run that is to be carried out."""

    config: RunConfig
    folder: Path
    target: float | None
    """Accuracy that its start model must not have reached."""
    fresh: bool
    """Whether it begins from the start, even if it is finished."""
    until: int | None = None
    """The round behind which it is saved and pauses."""
    told: tuple[int, ...] | None = None
    """`told_of` its folder when the study was begun: where it has failed since, another process has tried it, and it is
    not tried again. None where that does not matter."""


@dataclass(frozen=True)
class Ending:
    """How one run of a study ended."""

    status: str
    """``finished``, ``failed``, ``interrupted`` or ``paused``; ``elsewhere`` where another process works on it."""
    reason: str
    reused: bool = False
    """Whether the run was finished before and not run again."""
    fields: tuple[str, ...] = ()
    """``fields`` of the `EdgesimError` with which the run ended."""


@dataclass(frozen=True)
class Lost:
    """The process of a run has gone without a word; the run can go on from what it saved."""

    reason: str


News = Message | Ending | Lost


class Workers(Protocol):
    """Processes that carry out runs; each order ends with one `Ending` or `Lost`."""

    def has_room(self) -> bool:
        """Whether another order would be begun now."""

    def hand_out(self, order: RunOrder) -> None:
        """Have a run carried out; returns at once."""

    def news(self, timeout_s: float) -> list[tuple[str, News]]:
        """What is new of the orders, by the folder's name; waits for it so long at most."""

    def ask_to_end(self) -> None:
        """Have all runs save themselves and end, soon; the news still come."""

    def close(self) -> None:
        """End all processes, whatever they do."""


class Executor(Protocol):
    """Where the runs of studies are carried out."""

    tries: ClassVar[int]
    """How often a run is begun whose process is lost each time."""

    def connected(self) -> AbstractContextManager[None]:
        """Within this context `open` can be called; raises `EdgesimError`, within seconds, where it never could."""

    def open(self, out: Path, count: int, jobs: int | None, again: bool) -> Workers:
        """Workers for ``count`` runs of the study in ``out``, ``jobs`` at a time or as many as there is room for.

        ``again``: these runs were lost before. Raises `EdgesimError`.
        """


def refuse_failed(order: RunOrder) -> None:
    """Raises `EdgesimError` where another process has tried the run since the study was begun, and it failed.

    For the process that has the lease of the run's folder.
    """
    if order.told is not None and told_of(order.folder) != order.told:
        state = state_of(order.folder, is_mine=True)
        if state.status == "failed":
            raise EdgesimError(state.reason)


def run_one(order: RunOrder, cores: int, send: Callable[[Message], None]) -> Ending:
    """One run on its share of cores, whose news are sent; every error becomes an ending, so that the others finish."""
    listener = Listener(order.folder.name, order.config, send)
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
    except Exception as error:
        traceback.print_exc()
        return Ending("failed", f"an error in the program: {error!r}")
    if result.status != "finished":
        return Ending(result.status, result.reason)
    return Ending("finished", result.reason, result.reused)
