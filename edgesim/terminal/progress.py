"""What users see while runs go on: one display for a study's processes, one bar for a single run."""

import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from queue import Empty
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from edgesim.config import RunConfig
from edgesim.engine.server import Progress as RoundDone

_SECONDS_BETWEEN_MESSAGES = 0.2


@dataclass(frozen=True)
class Message:
    """News of one run, from its process."""

    run: str
    rounds: int
    """Rounds done."""
    text: str
    """Accuracy and simulated time, what is being prepared, or a note."""
    note_about: str = ""
    """What a note is about; empty for news of progress."""


class Listener:
    """Sends a run's news through a queue, a few times a second at most."""

    def __init__(self, run: str, config: RunConfig, queue: "Queue[Message]", stop: Event) -> None:
        self._run = run
        self._config = config
        self._queue = queue
        self._stop = stop
        self._sent_s = 0.0

    def on_start(self, what: str) -> None:
        """The run prepares something; raises KeyboardInterrupt when the study is to stop."""
        if self._stop.is_set():
            raise KeyboardInterrupt
        self._queue.put(Message(self._run, 0, what))

    def on_note(self, about: str, note: str) -> None:
        """There is something that the user should know of the run."""
        self._queue.put(Message(self._run, 0, note, about))

    def on_round(self, done: RoundDone) -> None:
        """The run finished a round; raises KeyboardInterrupt when the study is to stop."""
        if self._stop.is_set():
            raise KeyboardInterrupt
        now_s = time.monotonic()
        if now_s - self._sent_s >= _SECONDS_BETWEEN_MESSAGES:
            self._sent_s = now_s
            self._queue.put(Message(self._run, rounds_done(self._config, done), describe(done)))


def describe(done: RoundDone) -> str:
    """Accuracy, where evaluated, and simulated time."""
    accuracy = "" if done.accuracy is None else f"accuracy {done.accuracy:.3f}, "
    return f"{accuracy}t = {done.t_s:,.1f} s"


def expected_rounds(config: RunConfig) -> int:
    """Rounds of a complete config, the least where only ``stop_at_s`` ends it.

    One number counts once, since the number of frames comes with the data.
    """
    if config.rounds is None:
        return int((config.stop_at_s or 0.0) / config.round.tmax_s + 1e-9)
    return sum(config.rounds) if isinstance(config.rounds, list) else config.rounds


def rounds_done(config: RunConfig, done: RoundDone) -> int:
    """How far a run has come, in the rounds of `expected_rounds`: deadlines passed where only the time ends it."""
    return done.round if config.rounds is not None else int(done.t_s / config.round.tmax_s + 1e-9)


def bar(console: Console, transient: bool = False) -> Progress:
    """The columns that every progress bar of edgesim has; a transient one leaves no line behind."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=transient,
    )


class Display:
    """A bar for the whole study in rounds, and one for every run at work."""

    def __init__(self, console: Console, name: str, rounds: dict[str, int]) -> None:
        self._console = console
        self._rounds = rounds
        self._done = dict.fromkeys(rounds, 0)
        self._status: dict[str, str] = {}
        """How the runs that are over ended."""
        self._said: set[str] = set()
        self._noted: set[str] = set()
        """What notes were about that some run has given."""
        self._goes_on = False
        """Whether any run got anywhere: had a round or finished."""
        self._held: list[str] = []
        """Failures not told yet: where no run gets anywhere, the study's error tells the first and ends it."""
        self._progress = bar(console)
        self._all = self._progress.add_task(name, total=sum(rounds.values()), text="")
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        self._show_count()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and not self._goes_on:
            # Nothing came of any run: the study's error is all there is to say.
            self._progress.live.transient = True
        else:
            self._get_on()
        self._progress.stop()

    def has_started(self, run: str) -> bool:
        """Whether a run has sent news."""
        return run in self._bars

    def listen(self, queue: "Queue[Message]") -> None:
        """Take in all news that lie in the queue."""
        while True:
            try:
                message = queue.get_nowait()
            except Empty:
                return
            if message.note_about:
                self._note(message)
                continue
            if message.run in self._status:
                continue
            if message.run not in self._bars:
                total = self._rounds[message.run]
                self._bars[message.run] = self._progress.add_task(f"  {message.run}", total=total, text="")
            self._progress.update(self._bars[message.run], completed=message.rounds, text=message.text)
            self._advance(message.run, message.rounds)
            if message.rounds:
                self._get_on()

    def _note(self, message: Message) -> None:
        """Print a note, unless some run of the study has given one about the same thing."""
        if message.note_about not in self._noted:
            self._noted.add(message.note_about)
            text = f"{message.run}: {message.text}"
            self._console.print(text, highlight=False, markup=False, style="yellow")

    def ended(self, run: str, status: str, reason: str) -> None:
        """A run is over; a failure is printed at once, or as soon as any run gets anywhere.

        One that finished has all its rounds behind it, however early it ended; any other one those that it did.
        """
        self._status[run] = status
        # One reason may fail every run of a study: said once.
        if status != "finished" and reason not in self._said:
            self._said.add(reason)
            self._held.append(f"{status} {run}: {reason}")
        if status == "finished" or self._goes_on:
            self._get_on()
        if run in self._bars:
            self._progress.update(self._bars[run], visible=False)
        if status == "finished":
            self._advance(run, self._rounds[run])
        self._show_count()

    def _get_on(self) -> None:
        """Some run got somewhere, or the user ended them all: failures are the display's to tell."""
        self._goes_on = True
        for line in self._held:
            self._console.print(line, highlight=False, markup=False, style="red")
        self._held.clear()

    def _advance(self, run: str, rounds: int) -> None:
        rounds = max(rounds, self._done[run])
        self._progress.update(self._all, advance=rounds - self._done[run])
        self._done[run] = rounds

    def _show_count(self) -> None:
        ended = Counter(self._status.values())
        failed = f", {ended['failed']} failed" if ended["failed"] else ""
        self._progress.update(
            self._all, text=f"rounds, {ended['finished']} of {len(self._rounds)} runs finished{failed}"
        )
