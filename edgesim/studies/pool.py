"""Runs of a study in several processes of this machine, one run after another in each."""

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
"""How long a process whose connection has closed may take to end."""


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
        """Nothing is to be connected."""
        return nullcontext()

    def open(self, out: Path, count: int, jobs: int | None, again: bool) -> "Processes":
        """Processes for so many runs, one per core when ``jobs`` is absent, and one where memory may have run out."""
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
    """Whether the crew stays when these runs are done."""
    _at_work: dict[Connection, RunOrder] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)
    """Folders of runs that have sent news."""

    def has_room(self) -> bool:
        """Whether another order would be begun now."""
        return len(self._at_work) < self.at_once

    def hand_out(self, order: RunOrder) -> None:
        """Give an order to a process that is idle, or to a new one."""
        connection = next((each for each in self.crew.processes if each not in self._at_work), None)
        if connection is None:
            with uninterrupted():
                process, connection = start_process(_serve, name="edgesim study", daemon=False)
                self.crew.processes[connection] = process
        self._at_work[connection] = order
        with suppress(OSError):
            # A process that has ended is noticed when it is listened to.
            connection.send((order, self.share))

    def news(self, timeout_s: float) -> list[tuple[str, News]]:
        """What is new of the orders; raises `EdgesimError` if a process ends before any run has begun."""
        ready = [each for each in wait(list(self._at_work), timeout_s) if isinstance(each, Connection)]
        return [self._listen(connection) for connection in ready]

    def _listen(self, connection: Connection) -> tuple[str, News]:
        name = self._at_work[connection].folder.name
        try:
            said: News = connection.recv()
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
        if isinstance(said, Ending):
            del self._at_work[connection]
        return name, said

    def ask_to_end(self) -> None:
        """Have all runs save themselves and end; those that have not begun just end."""
        for connection, order in self._at_work.items():
            if order.folder.name in self._started:
                ask_to_end(self.crew.processes[connection])
            else:
                self.crew.processes[connection].kill()

    def close(self) -> None:
        """End all processes, whatever they do, but for an idle crew that stays."""
        if self._at_work or not self.stays:
            self.crew.close()


def _serve(connection: Connection) -> None:
    """Run what comes through a connection, one run after another, until it is closed or one is interrupted."""

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
