"""Progress of runs: one display for the processes of a study, one bar for a single run."""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from typing_extensions import override

from edgesim.base.plain_text import printable
from edgesim.screen.console import lacks_widgets

_SECONDS_BEFORE_LINES = 2.0
_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_BETWEEN_CHANGES = 0.5
"""Least time between two changes of the line in a notebook, in s."""


ROUNDS, SECONDS = "rounds", "simulated s"
"""Units in which the progress of runs is counted."""


@dataclass(frozen=True)
class Extent:
    """How long a run is, in rounds or in simulated seconds."""

    total: int
    unit: str
    """`ROUNDS` or `SECONDS`."""


@dataclass(frozen=True)
class Message:
    """News of one run, from its process."""

    run: str
    rounds: int
    """Rounds done."""
    t_s: float
    """Simulated seconds at the end of the last round."""
    text: str
    """Text to show: accuracy and simulated time, what is being prepared, or a note."""
    note_about: str = ""
    """Subject of a note; empty for news of progress."""


class Bars(Progress):
    """Progress bars; without a terminal the first of them is printed as a line now and then."""

    say: Callable[[str], None] | None = None
    """Shows a line; None where bars are shown."""
    every_s: float = math.inf
    """Wall time between two lines."""
    due_s: float = math.inf
    """Instant of the next line, by the monotonic clock."""

    @override
    def add_task(self, description: str, *arguments: Any, **facts: Any) -> TaskID:
        return super().add_task(printable(description, keep=""), *arguments, **facts)

    @override
    def update(self, task_id: TaskID, *arguments: Any, **changes: Any) -> None:
        if "text" in changes:
            changes["text"] = printable(changes["text"], keep="")
        super().update(task_id, *arguments, **changes)
        now_s = time.monotonic()
        if now_s >= self.due_s:
            self.due_s = now_s + self.every_s
            self._say()

    @override
    def stop(self) -> None:
        """End the display; a line in a notebook shows the last state."""
        # Before Rich 14.3 one that shows nothing would end with an empty line.
        if not self.disable:
            super().stop()
        if isinstance(self.say, NotebookLine) and self.tasks:
            self._say()

    def _say(self) -> None:
        assert self.say is not None
        first = self.tasks[0]
        self.say(f"{first.description} {first.completed:,.0f} of {first.total:,.0f} {first.fields['text']}".rstrip())


class NotebookLine:
    """A line of a notebook's cell that is rewritten in place, without widgets."""

    def __init__(self) -> None:
        self._shown: Any = None

    def __call__(self, text: str) -> None:
        """Show a text in place of the last one."""
        from IPython.display import display

        if self._shown is None:
            self._shown = display({"text/plain": text}, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update({"text/plain": text}, raw=True)


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def bar(console: Console, transient: bool = False, lines: bool | None = None) -> Bars:
    """A progress bar with the columns that all of edgesim's have; a transient one is erased at its end.

    ``lines``: lines on stderr in its place; None: where the console is no terminal. Notebooks without ipywidgets get
    one line that changes, and a quiet console gets nothing.
    """
    in_notebook = lacks_widgets(console)
    lines = not in_notebook and not console.is_terminal if lines is None else lines
    bars = Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=transient,
        # Without a terminal an erased bar would leave an empty line.
        disable=console.quiet or in_notebook or (transient and (lines or not console.is_terminal)),
    )
    if console.quiet:
        return bars
    if in_notebook:
        bars.say, bars.every_s, bars.due_s = NotebookLine(), _SECONDS_BETWEEN_CHANGES, 0.0
    elif lines:
        bars.say, bars.every_s = _to_stderr, _SECONDS_BETWEEN_LINES
        bars.due_s = time.monotonic() + _SECONDS_BEFORE_LINES
    return bars


class Display:
    """A bar for the whole study, and one for every run in progress.

    Runs that end after rounds are counted in rounds, those that end after simulated seconds in these; a study of both
    is counted in per cent, of which each run has as many.
    """

    def __init__(
        self, console: Console, name: str, extents: Mapping[str, Extent], noted: set[str] | None = None
    ) -> None:
        """``extents`` are the lengths of the runs.

        ``noted``: subjects of notes that are not printed any more; with it bars are erased at their end.
        """
        self._console = console
        self._extents = extents
        units = {extent.unit for extent in extents.values()}
        self._unit = units.pop() if len(units) == 1 else ""
        """Unit of the whole study; empty where runs differ in theirs."""
        self._done = dict.fromkeys(extents, 0.0)
        self._status: dict[str, str] = {}
        """Statuses of the runs that have ended."""
        self._said: set[str] = set()
        self._noted = set() if noted is None else noted
        """Subjects of the notes printed so far."""
        self._goes_on = False
        """Whether any run has had a round or finished."""
        self._held: list[str] = []
        """Failures not printed yet: if no run has a round, the study's error reports the first one instead."""
        self._progress = bar(console, transient=noted is not None)
        self._total = sum(extent.total for extent in extents.values()) if self._unit else 100
        self._all = self._progress.add_task(name, total=self._total, text="")
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        self._show_count()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and not self._goes_on:
            # No run had a round, and the study's error says why.
            self._progress.live.transient = True
        else:
            self._get_on()
        self._progress.stop()

    def show(self, message: Message) -> None:
        """Show news of a run."""
        if message.note_about:
            self._note(message)
            return
        if message.run not in self._bars:
            total = self._extents[message.run].total
            self._bars[message.run] = self._progress.add_task(f"  {message.run}", total=total, text="")
        # In whole seconds, of which none is counted before it is over.
        done = message.rounds if self._extents[message.run].unit == ROUNDS else math.floor(message.t_s)
        self._progress.update(self._bars[message.run], completed=done, text=message.text)
        self._advance(message.run, done)
        if message.rounds:
            self._get_on()

    def say(self, what: str) -> None:
        """Print a line about the study."""
        self._console.print(what, soft_wrap=True)

    def _note(self, message: Message) -> None:
        """Print a note, unless another run of the study has sent one on the same subject."""
        if message.note_about not in self._noted:
            self._noted.add(message.note_about)
            text = f"{message.run}: {message.text}"
            self._console.print(text, style="yellow")

    def ended(self, run: str, status: str, reason: str) -> None:
        """Note that a run has ended; a failure is printed at once if any run has had a round, else as soon as one has.

        A finished run that made fewer rounds than planned counts with these, as in the tables of runs
        (`edgesim.tables.show_ledger`); one that seconds end counts with all of them, one that did not finish with what
        it did.
        """
        self._status[run] = status
        # If all runs of a study fail for the same reason, it is printed once.
        if status not in ("finished", "pruned", "paused") and reason not in self._said:
            self._said.add(reason)
            self._held.append(f"{status} {run}: {reason}")
        if status == "finished" or self._goes_on:
            self._get_on()
        if run in self._bars:
            self._progress.update(self._bars[run], visible=False)
        if status == "finished" and self._unit == ROUNDS and self._done[run]:
            self._total -= self._extents[run].total - int(self._done[run])
            self._progress.update(self._all, total=self._total)
        elif status == "finished":
            self._advance(run, self._extents[run].total)
        self._show_count()

    def _get_on(self) -> None:
        """Print failures from now on: a run has had a round, or the user stopped the study."""
        self._goes_on = True
        for line in self._held:
            self._console.print(line, style="red")
        self._held.clear()

    def _advance(self, run: str, amount: int) -> None:
        part = 100 * amount / max(1, self._extents[run].total) / len(self._extents)
        done = max(float(amount) if self._unit else part, self._done[run])
        self._progress.update(self._all, advance=done - self._done[run])
        self._done[run] = done

    def _show_count(self) -> None:
        ended = Counter(self._status.values())
        failed = f", {ended['failed']} failed" if ended["failed"] else ""
        text = f"{self._unit or '%'}, {ended['finished']} of {len(self._extents)} runs finished{failed}"
        self._progress.update(self._all, text=text)
