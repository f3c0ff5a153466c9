"""Handing out the runs of a study, and noting what became of them: the same for every executor."""

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.lease import leased
from edgesim.base.processes import uninterrupted
from edgesim.folder.records import note_failure
from edgesim.folder.state import state_of
from edgesim.screen.progress import Display, Message
from edgesim.simulation import composition as simulation
from edgesim.studies.executor import Ending, Executor, Lost, RunOrder, Workers
from edgesim.studies.ledger import told_of
from edgesim.studies.plan import PlannedRun, Study

_PATIENCE_S = 8.0
"""How long the runs of a study that is stopped have for closing their tables, before their processes are killed."""
_LOOK_S = 1.0
"""How often runs are looked at that other processes work on, and workers that have said nothing."""


@dataclass(frozen=True)
class Dispatch:
    """Has the runs of a study carried out and notes in ``endings`` how each ended."""

    study: Study
    out: Path
    anew: Collection[str]
    """Folders of finished runs that are run again."""
    executor: Executor
    jobs: int | None
    display: Display
    until: Mapping[str, int] = field(default_factory=dict)
    """By folder, the round behind which a run is saved and pauses."""
    told: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By folder, `told_of` it when the study was begun: a run that another process tries, and that fails, is not tried
    again."""
    endings: dict[str, Ending] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    """Folders of the runs that other processes work on."""
    on_finished: Callable[[Path], None] = lambda _: None
    """Is called with the folder of each run that finishes, while the next ones are carried out."""
    _just_finished: deque[Path] = field(default_factory=deque)

    def end(self, folder: str, ending: Ending) -> None:
        """Note and show that a run has ended, or that another process works on it."""
        if ending.status == "elsewhere":
            self.elsewhere.add(folder)
            return
        self.endings[folder] = ending
        if ending.status == "finished" and not ending.reused:
            self._just_finished.append(self.out / folder)
        self.display.ended(folder, ending.status, ending.reason)

    def run_all(self) -> None:
        """Run all runs that have not ended; those that other processes work on are waited for."""
        told = False
        while pending := [run for run in self.study.runs if run.folder not in self.endings]:
            free = [run for run in pending if not self._ended_elsewhere(run)]
            lost: dict[str, Lost] = {}
            for tried in range(self.executor.tries):
                if free:
                    lost = self._run(free, again=tried > 0)
                    free = [run for run in free if run.folder in lost]
            for run in free:
                self._note_lost(run, lost[run.folder].reason)
            left = len(self.study.runs) - len(self.endings)
            if left and not told:
                told = True
                self.display.say(f"other processes work on {left} of the runs; waiting for them")
            if left:
                time.sleep(_LOOK_S)

    def _ended_elsewhere(self, run: PlannedRun) -> bool:
        """Whether a run is not free, since another process works on it or, as is noted then, has just ended it."""
        state = state_of(self.out / run.folder)
        is_new = run.folder in self.told and told_of(self.out / run.folder) != self.told[run.folder]
        if state.status in ("finished", "failed") and (run.folder in self.elsewhere or is_new):
            self.end(run.folder, Ending(state.status, state.reason))
            return True
        if state.status == "running":
            self.elsewhere.add(run.folder)
            return True
        self.elsewhere.discard(run.folder)
        return False

    def _order(self, run: PlannedRun) -> RunOrder:
        name = run.folder
        until, told = self.until.get(name), self.told.get(name)
        return RunOrder(run.config, self.out / name, self.study.target, name in self.anew, until, told)

    def _note_lost(self, run: PlannedRun, reason: str) -> None:
        with suppress(EdgesimError), leased(self.out / run.folder):
            note_failure(self.out / run.folder, simulation.as_toml(run.config), reason)
        self.end(run.folder, Ending("failed", reason))

    def _run(self, runs: Sequence[PlannedRun], again: bool) -> dict[str, Lost]:
        """Have runs carried out, which were lost before where ``again``; returns those that were lost."""
        waiting, at_work = deque(runs), set[str]()
        lost: dict[str, Lost] = {}

        def listen(workers: Workers, timeout_s: float) -> None:
            for name, said in workers.news(timeout_s):
                if isinstance(said, Message):
                    self.display.show(said)
                    continue
                at_work.discard(name)
                if isinstance(said, Lost):
                    lost[name] = said
                else:
                    self.end(name, said)

        workers = self.executor.open(self.out, len(runs), self.jobs, again)
        # A second Ctrl-C waits until the runs have closed their tables.
        with uninterrupted() as held:
            try:
                with held.let_in():
                    while waiting or at_work:
                        while waiting and workers.has_room():
                            run = waiting.popleft()
                            at_work.add(run.folder)
                            workers.hand_out(self._order(run))
                        if self._just_finished:
                            self.on_finished(self._just_finished.popleft())
                        listen(workers, 0.0 if self._just_finished else _LOOK_S)
            except KeyboardInterrupt:
                workers.ask_to_end()
                until_s = time.monotonic() + _PATIENCE_S
                while at_work and (left_s := until_s - time.monotonic()) > 0:
                    listen(workers, left_s)
                raise
            finally:
                workers.close()
        return lost
