"""Dispatch of a study's runs to the processes of an executor, and of their endings to the study."""

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
from edgesim.simulation.complete import as_toml
from edgesim.studies.executor import Ending, Executor, Lost, RunOrder, Workers
from edgesim.studies.ledger import fingerprint
from edgesim.studies.plan import PlannedRun, Study

_PATIENCE_S = 8.0
"""Seconds in which the runs of a stopped study may close their tables before their processes are killed."""
_LOOK_S = 1.0
"""Longest wait between two looks at the workers, and between two at runs that other processes work on."""


@dataclass(frozen=True)
class Dispatch:
    """Has an executor carry out the runs of a study, and notes in ``endings`` how each ended."""

    study: Study
    out: Path
    anew: Collection[str]
    """Folders of finished runs that are run again."""
    executor: Executor
    jobs: int | None
    display: Display
    until: Mapping[str, int] = field(default_factory=dict)
    """The round after which a run is saved and pauses, by folder."""
    fingerprints: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """`fingerprint` of each folder when the study began: a run that has failed since then was tried by another process
    and is not tried again."""
    endings: dict[str, Ending] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    """Folders of the runs that other processes work on."""
    on_finished: Callable[[Path], None] = lambda _: None
    """Called with the folder of each run that finishes, as soon as the others leave time for it."""
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
        has_said = False
        while pending := [run for run in self.study.runs if run.folder not in self.endings]:
            free = [run for run in pending if not self._ended_elsewhere(run)]
            lost: dict[str, Lost] = {}
            for attempt in range(self.executor.tries):
                if free:
                    lost = self._run(free, again=attempt > 0)
                    free = [run for run in free if run.folder in lost]
            for run in free:
                folder, reason = self.out / run.folder, lost[run.folder].reason
                with suppress(EdgesimError), leased(folder):
                    note_failure(folder, as_toml(run.config), reason)
                self.end(run.folder, Ending("failed", reason))
            left = len(self.study.runs) - len(self.endings)
            if left and not has_said:
                has_said = True
                self.display.say(f"other processes work on {left} of the runs; waiting for them")
            if left:
                time.sleep(_LOOK_S)
        while self._just_finished:
            self.on_finished(self._just_finished.popleft())

    def _ended_elsewhere(self, run: PlannedRun) -> bool:
        """Whether another process works on a run or has ended it; an ending is noted."""
        state = state_of(self.out / run.folder)
        before = self.fingerprints.get(run.folder)
        is_new = before is not None and fingerprint(self.out / run.folder) != before
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
        until, before = self.until.get(name), self.fingerprints.get(name)
        return RunOrder(run.config, self.out / name, self.study.target, name in self.anew, until, before)

    def _run(self, runs: Sequence[PlannedRun], again: bool) -> dict[str, Lost]:
        """Carry out runs, ``again`` if they were lost before; returns those whose processes were lost, by folder."""
        waiting, at_work = deque(runs), set[str]()
        lost: dict[str, Lost] = {}

        def listen(workers: Workers, timeout_s: float) -> None:
            for name, news in workers.news(timeout_s):
                if isinstance(news, Message):
                    self.display.show(news)
                    continue
                at_work.discard(name)
                if isinstance(news, Lost):
                    lost[name] = news
                else:
                    self.end(name, news)

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
