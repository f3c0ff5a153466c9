"""Runs of a study in several processes, one run after another in each."""

import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from edgesim import simulation
from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.runs.checkpoints import saved_round
from edgesim.runs.lease import Taken, leased
from edgesim.runs.processes import ask_to_end, cores, hear_parent, let_in, start_process, uninterrupted
from edgesim.runs.records import note_failure
from edgesim.studies.ledger import state_of
from edgesim.studies.plan import PlannedRun, Study
from edgesim.terminal.progress import Display, Listener, Message

_PATIENCE_S = 8.0
"""How long the runs of a study that is stopped have for closing their tables, before their processes are killed."""
_LOOK_S = 1.0
"""How often runs are looked at that other processes work on."""


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
class Crew:
    """Processes that stay between pools, since each loads its libraries for seconds."""

    processes: dict[Connection, BaseProcess] = field(default_factory=dict)

    def close(self) -> None:
        """End them."""
        for connection, process in self.processes.items():
            process.kill()
            process.join()
            connection.close()
        self.processes.clear()


@dataclass(frozen=True)
class Pool:
    """Runs a study in pools of processes and notes in ``endings`` how each run ended."""

    study: Study
    out: Path
    anew: Collection[str]
    """Folders of finished runs that are run again."""
    endings: dict[str, Ending]
    display: Display
    until: Mapping[str, int] = field(default_factory=dict)
    """By folder, the round behind which a run is saved and pauses."""
    crew: Crew | None = None
    """Works on the runs and stays, unless an error ends the pool; None: processes that end with the runs."""
    elsewhere: set[str] = field(default_factory=set)
    """Folders of the runs that other processes work on."""

    def end(self, folder: str, ending: Ending) -> None:
        """Note and show that a run has ended, or that another process works on it."""
        if ending.status == "elsewhere":
            self.elsewhere.add(folder)
            return
        self.endings[folder] = ending
        self.display.ended(folder, ending.status, ending.reason)

    def run_all(self, jobs: int) -> None:
        """Run all runs that have not ended, ``jobs`` at a time; those that other processes work on are waited for."""
        told = False
        while pending := [run for run in self.study.runs if run.folder not in self.endings]:
            free = [run for run in pending if not self._ended_elsewhere(run)]
            # Perhaps there was too little memory: each run whose process was killed is tried once more, alone.
            for run in self._run_pool(free, jobs) if free else []:
                if self._run_pool([run], 1):
                    self._note_killed(run)
            left = len(self.study.runs) - len(self.endings)
            if left and not told:
                told = True
                self.display.say(f"other processes work on {left} of the runs; waiting for them")
            if left:
                time.sleep(_LOOK_S)

    def _ended_elsewhere(self, run: PlannedRun) -> bool:
        """Whether a run is not free, since another process works on it or, as is noted then, has just ended it."""
        state = state_of(self.out / run.folder)
        if state.status in ("finished", "failed") and run.folder in self.elsewhere:
            self.end(run.folder, Ending(state.status, state.reason))
            return True
        if state.status == "running":
            self.elsewhere.add(run.folder)
            return True
        self.elsewhere.discard(run.folder)
        return False

    def _note_killed(self, run: PlannedRun) -> None:
        reason = "its process was killed (out of memory?)"
        with suppress(EdgesimError), leased(self.out / run.folder):
            note_failure(self.out / run.folder, simulation.as_toml(run.config), reason)
        self.end(run.folder, Ending("failed", reason))

    def _run_pool(self, runs: Sequence[PlannedRun], jobs: int) -> list[PlannedRun]:
        """Run in several processes; returns the runs whose process was killed.

        Raises `EdgesimError` if a process ends before any run has begun.
        """
        waiting, killed = deque(runs), []
        share = max(1, cores() // min(jobs, len(runs)))
        crew = self.crew or Crew()
        processes, is_whole = crew.processes, False
        at_work: dict[Connection, PlannedRun] = {}

        def give(connection: Connection) -> None:
            run = at_work[connection] = waiting.popleft()
            with suppress(OSError):
                # A process that has ended is noticed when it is listened to.
                fresh, until = run.folder in self.anew, self.until.get(run.folder)
                connection.send((run.config, self.out / run.folder, self.study.target, share, fresh, until))

        def listen(connection: Connection) -> bool:
            """Take one message; returns whether the process lives."""
            try:
                said = connection.recv()
            except (EOFError, OSError):
                killed.append(at_work.pop(connection))
                return False
            if isinstance(said, Message):
                self.display.show(said)
            else:
                self.end(at_work.pop(connection).folder, said)
            return True

        def run_them() -> None:
            while waiting or at_work:
                while waiting and len(at_work) < jobs:
                    idle = [connection for connection in processes if connection not in at_work]
                    if not idle:
                        with uninterrupted():
                            process, connection = start_process(_serve, name="edgesim study", daemon=False)
                            processes[connection] = process
                        idle = [connection]
                    give(idle[0])
                for connection in _heard(at_work, None):
                    if not listen(connection):
                        process = processes.pop(connection)
                        process.join(_PATIENCE_S)
                        process.kill()
                        connection.close()
                        if not any(self.display.has_started(run.folder) for run in runs):
                            raise EdgesimError(
                                "the worker processes of the study ended before their first run; call run_study under "
                                "if __name__ == '__main__', and check that there is memory left"
                            )

        # A second Ctrl-C waits until the runs have closed their tables.
        with uninterrupted() as held:
            try:
                with let_in(held):
                    run_them()
                is_whole = True
            except KeyboardInterrupt:
                for connection, run in at_work.items():
                    if self.display.has_started(run.folder):
                        ask_to_end(processes[connection])
                    else:
                        processes[connection].kill()
                until_s = time.monotonic() + _PATIENCE_S
                while at_work and (left_s := until_s - time.monotonic()) > 0:
                    for connection in _heard(at_work, left_s):
                        listen(connection)
                raise
            finally:
                if not (is_whole and self.crew):
                    crew.close()
        return killed


def _heard(connections: Iterable[Connection], timeout_s: float | None) -> list[Connection]:
    """Connections through which something came, or whose process has ended; waits for the first of them."""
    return [ready for ready in wait(list(connections), timeout_s) if isinstance(ready, Connection)]


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
            config, folder, target, share, fresh, until = connection.recv()
            ending = _run_one(config, folder, target, share, fresh, send, until)
            status = ending.status
            with uninterrupted():
                send(ending)


def _run_one(
    config: RunConfig,
    folder: Path,
    target: float | None,
    share: int,
    fresh: bool,
    send: Callable[[Message], None],
    until: int | None = None,
) -> Ending:
    """One run on its share of cores, whose news are sent; every error becomes an ending, so that the others finish."""
    listener = Listener(folder.name, config, send)
    try:
        listener.on_start("start")
        result = simulation.run(
            config,
            folder,
            listener.on_round,
            listener.on_start,
            target,
            share,
            listener.on_note,
            fresh,
            keep_failure=True,
            until=until,
        )
    except Taken as taken:
        return Ending("elsewhere", str(taken))
    except EdgesimError as error:
        return Ending("failed", str(error), fields=error.fields)
    except KeyboardInterrupt:
        if until is not None and saved_round(folder) == until:
            return Ending("paused", f"behind round {until}")
        return Ending("interrupted", "stopped as the study was")
    except Exception as error:
        traceback.print_exc()
        return Ending("failed", f"an error in the program: {error!r}")
    if result.status != "finished":
        return Ending(result.status, result.reason)
    return Ending("finished", result.reason, result.reused)
