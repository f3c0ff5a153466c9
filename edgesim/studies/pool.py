"""The executor of this machine: several processes, each of which carries out one run after another."""

import os
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import ClassVar

from edgesim.base.errors import EdgesimError
from edgesim.base.processes import ask_to_end, cores, hear_parent, start_process, uninterrupted
from edgesim.screen.progress import Message
from edgesim.studies.executor import Ending, Lost, News, RunOrder, run_one

_PATIENCE_S = 8.0
"""Seconds in which a process whose connection has closed may end."""


@dataclass(frozen=True)
class Crew:
    """Processes that stay between studies, since each loads its libraries for seconds."""

    processes: dict[Connection, BaseProcess] = field(default_factory=dict)

    def close(self) -> None:
        """End them."""
        for connection, process in self.processes.items():
            process.kill()
            process.join()
            connection.close()
        self.processes.clear()


@dataclass(frozen=True)
class ProcessPool:
    """The executor of this machine; a run whose process was killed is tried once more, alone."""

    crew: Crew | None = None
    """Works on the runs and stays, unless an error ends the study; None: processes that end with the runs."""

    tries: ClassVar[int] = 2

    def connected(self) -> AbstractContextManager[None]:
        """Context that does nothing: this machine needs no connection."""
        return nullcontext()

    def open(self, out: Path, count: int, jobs: int | None, again: bool) -> "Processes":
        """Processes for ``count`` runs, one per core if ``jobs`` is absent; a single one after runs were lost."""
        at_once = 1 if again else jobs or cores()
        return Processes(
            at_once, max(1, cores() // min(at_once, count)), again, self.crew or Crew(), self.crew is not None
        )


@dataclass
class Processes:
    """Processes of a pool, started when they are needed."""

    at_once: int
    share: int
    """Cores of each run."""
    has_begun: bool
    """Whether any run has ever sent news."""
    crew: Crew
    stays: bool
    """Whether the crew's processes outlive these runs."""
    _at_work: dict[Connection, RunOrder] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)
    """Folders of runs that have sent news."""

    def has_room(self) -> bool:
        """Whether fewer runs are at work than may be at a time."""
        return len(self._at_work) < self.at_once

    def hand_out(self, order: RunOrder) -> None:
        """Give an order to an idle process, or to a new one."""
        connection = next((idle for idle in self.crew.processes if idle not in self._at_work), None)
        if connection is None:
            with uninterrupted():
                process, connection = start_process(_serve, name="edgesim study", daemon=False)
                self.crew.processes[connection] = process
        self._at_work[connection] = order
        with suppress(OSError):
            # A process that has ended is noticed when it is listened to.
            connection.send((order, self.share))

    def news(self, timeout_s: float) -> list[tuple[str, News]]:
        """Messages and endings since the last call; raises `EdgesimError` if a process ends before any run begins."""
        ready = wait(list(self._at_work), timeout_s)
        return [self._listen(connection) for connection in ready if isinstance(connection, Connection)]

    def _listen(self, connection: Connection) -> tuple[str, News]:
        name = self._at_work[connection].folder.name
        try:
            news: News = connection.recv()
        except (EOFError, OSError):
            del self._at_work[connection]
            process = self.crew.processes.pop(connection)
            process.join(_PATIENCE_S)
            process.kill()
            connection.close()
            if not self.has_begun:
                raise EdgesimError(
                    "the worker processes of the study ended before their first run; call edgesim.study "
                    "below if __name__ == '__main__':, and check that there is memory left"
                ) from None
            return name, Lost("its process was killed (out of memory?)")
        self.has_begun = True
        self._started.add(name)
        if isinstance(news, Ending):
            del self._at_work[connection]
        return name, news

    def ask_to_end(self) -> None:
        """Ask all runs to save a checkpoint and end; the processes of runs that have not begun are killed."""
        for connection, order in self._at_work.items():
            if order.folder.name in self._started:
                ask_to_end(self.crew.processes[connection])
            else:
                self.crew.processes[connection].kill()

    def close(self) -> None:
        """Kill all processes, except an idle crew that outlives the runs."""
        if self._at_work or not self.stays:
            self.crew.close()


def _serve(connection: Connection) -> None:
    """Carry out the orders of a connection, one after another, until it is closed or a run is interrupted."""

    def send(message: Message | Ending) -> None:
        try:
            connection.send(message)
        except OSError:
            # The parent has gone.
            os._exit(1)

    with suppress(EOFError, OSError, KeyboardInterrupt):
        hear_parent()
        status = ""
        while status != "interrupted":
            order, share = connection.recv()
            ending = run_one(order, share, send)
            status = ending.status
            with uninterrupted():
                send(ending)
