"""Processor cores, child processes and signals."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, parent_process, reduction, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from typing_extensions import override

from edgesim.base.plain_text import printable


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_SOON = (signal.SIGTERM, signal.SIGUSR1)
"""Signals that `kill`, batch systems and containers send to a process that is to end soon."""
_OWN = signal.SIGUSR2
"""Signal that a study sends to its processes when it is asked to end; others may reach a whole process group."""
_ENDING = (signal.SIGINT, *_SOON, _OWN)
"""Signals that ask a process to end: Ctrl-C too."""
_PATIENCE_S = 5.0
"""Seconds that a run which is asked to end has to come to a round's end; batch systems and studies kill it later."""


AGAIN = 75
"""EX_TEMPFAIL of sysexits.h, after which many batch systems start a job again."""
INTERRUPTED = 128 + signal.SIGINT
"""Status of a process that Ctrl-C ended, as shells have it."""
READER_LEFT = 128 + 13
"""Status of a process that SIGPIPE ended: its output is read no further."""
UNREAD = "nothing reads its output any more"
"""Why a run has stopped whose process ends so."""


class Stopped(KeyboardInterrupt, SystemExit):
    """A run or study ended on request and can be resumed; the message says how, the status is the process's.

    A script that does not catch it ends with that status.
    """

    def __init__(self, message: str, status: int = AGAIN) -> None:
        super().__init__(message)
        self.code = self.status = status
        self.is_printed = False


@contextmanager
def why_stopped_printed() -> Iterator[None]:
    """Print the message of a `Stopped` that leaves this context on stderr, once; Python itself would print nothing."""
    try:
        yield
    except Stopped as stopped:
        if not stopped.is_printed:
            print(printable(str(stopped), keep=""), file=sys.stderr)
            stopped.is_printed = True
        raise


def sigterm_interrupts() -> None:
    """Let SIGTERM and SIGUSR1 raise KeyboardInterrupt, as Ctrl-C does, unless this process ignores or handles them."""
    for number, was in _handlers(_SOON).items():
        if was == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _handlers(numbers: Iterable[signal.Signals]) -> dict[signal.Signals, Any]:
    """Handlers of signals, by signal; none outside the main thread, which alone can set them."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in numbers}


class StopRequest:
    """A request to end soon, which Ctrl-C, SIGTERM or SIGUSR1 makes of this process."""

    def __init__(self) -> None:
        self.signal: int | None = None
        """The signal that asked; None as long as none has."""
        self._timer = threading.Timer(_PATIENCE_S, self._ask_again)
        self._timer.daemon = True

    def hear(self, number: int, _: FrameType | None) -> None:
        """Handle a signal; the second one, or `_PATIENCE_S` without an end, raises KeyboardInterrupt."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        self._timer.start()

    def _ask_again(self) -> None:
        """Signal the main thread from the timer's; that ends the system call in which it may wait for a process."""
        if self.signal is not None and (main := threading.main_thread().ident) is not None:
            signal.pthread_kill(main, self.signal)

    @property
    def status(self) -> int:
        """Exit status of a process that ends on request and can be resumed."""
        return INTERRUPTED if self.signal == signal.SIGINT else AGAIN

    def cancel(self) -> None:
        """Let no KeyboardInterrupt follow."""
        self._timer.cancel()


@contextmanager
def asked_to_end() -> Iterator[StopRequest]:
    """Note Ctrl-C, SIGTERM and SIGUSR1 within this context as requests to end, unless this process ignores them.

    The handlers of before get the signal at the end of the context, unless an error ends it.
    """
    request = StopRequest()
    with _handled(_ENDING, request.hear):
        try:
            yield request
        finally:
            request.cancel()
    if request.signal is not None:
        signal.raise_signal(request.signal)


@contextmanager
def _handled(numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Within this context a handler gets some signals, in the main thread.

    It gets those that would interrupt Python, or end the process before anything is saved.
    """
    handlers = _handlers(numbers).items()
    before = {number: was for number, was in handlers if callable(was) or (number in _SOON and was == signal.SIG_DFL)}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def stopped_by(message: str) -> Iterator[None]:
    """Let SIGTERM and SIGUSR1 raise `Stopped` within this context, unless this process ignores them."""
    came = threading.Event()

    def stop(*_: object) -> None:
        came.set()
        raise Stopped(message)

    with _handled(_SOON, stop):
        try:
            yield
        except KeyboardInterrupt as interrupt:
            # Libraries that wait in C may raise another in its place, as Ray does.
            if came.is_set() and not isinstance(interrupt, Stopped):
                raise Stopped(message) from None
            raise


class Held:
    """Ctrl-C and SIGTERM of this process while `uninterrupted` holds them."""

    def __init__(self) -> None:
        self.came: list[int] = []
        """Signals that have come and have had no effect yet."""
        self._let_in = False
        # A handler that is no function of Python cannot be put back.
        self._before = {number: was for number, was in _handlers(_ENDING).items() if was not in (None, signal.SIG_IGN)}
        for number in self._before:
            signal.signal(number, self._hear)

    @contextmanager
    def let_in(self) -> Iterator[None]:
        """Let the first signal within this context take effect at once; those behind it are held again."""
        self._let_in = True
        try:
            if self.came:
                signal.raise_signal(self.came.pop(0))
            yield
        finally:
            self._let_in = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if not self._let_in:
            self.came.append(number)
            return
        self._let_in, was = False, self._before[signal.Signals(number)]
        if callable(was):
            was(number, frame)
        else:
            signal.signal(number, was)
            signal.raise_signal(number)
        self._let_in = True

    def release(self) -> None:
        """Put back the handlers of before."""
        for number, was in self._before.items():
            # A handler may have put another in its place.
            if signal.getsignal(number) == self._hear:
                signal.signal(number, was)


@contextmanager
def uninterrupted() -> Iterator[Held]:
    """Hold Ctrl-C and SIGTERM back until the end of this context, so that no table is written in part.

    They wait even where the system does not come back from a write (a network drive that has gone): Arrow goes on
    writing after a signal, and many drives let none through, so only SIGKILL ends such a process. What it wrote before
    can be read.
    """
    held = Held()
    try:
        yield held
    except KeyboardInterrupt:
        # It takes effect already.
        held.came.clear()
        raise
    finally:
        held.release()
        if held.came:
            signal.raise_signal(held.came[0])


def start_process(
    target: Callable[..., None], *arguments: Any, name: str, daemon: bool
) -> tuple[BaseProcess, Connection]:
    """Start a process that calls ``target(connection, *arguments)``; the other end of that connection is returned.

    The process is a new interpreter, since a forked copy of a process in which torch or BLAS threads run can hang. It
    does not hear Ctrl-C and SIGTERM, which often go to all processes of a group: this process ends it. It ends itself
    when this process does, even if that is killed. Start it within `uninterrupted`, since a half-started one complains.
    """
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_begin, args=(target, there, _Parcel(arguments)), name=_Name(name), daemon=daemon)
    # The resource tracker unblocks both signals when it starts.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        with _main_that_can_be_read():
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    there.close()
    return process, here


@contextmanager
def _main_that_can_be_read() -> Iterator[None]:
    """Hide a main script that came from standard input, which a new interpreter could not read."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is None or os.path.isfile(file):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = file


def hear_parent() -> None:
    """Let what `ask_to_end` sends raise KeyboardInterrupt in this process of `start_process`, once."""

    def interrupt(*_: object) -> None:
        signal.signal(_OWN, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(_OWN, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [_OWN])


def ask_to_end(process: BaseProcess) -> None:
    """Ask a process that called `hear_parent` to save its run and to end."""
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, _OWN)


class _Parcel:
    """Arguments of a process, which travel in a file without a name.

    Python writes the arguments into a pipe, and would wait for ever where they do not fit into it and the process has
    been killed before it read them.
    """

    def __init__(self, value: tuple[Any, ...]) -> None:
        self.value = value
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        reduction.ForkingPickler(self.file).dump(self.value)
        self.file.seek(0)
        return _unpack, (reduction.DupFd(self.file.fileno()),)


def _unpack(fd: Any) -> Any:
    with os.fdopen(fd.detach(), "rb") as file:
        return reduction.ForkingPickler.loads(file.read())


class _Name(str):
    """The name of a process: the first that it reads, before it loads the main module and its libraries for seconds.

    Reading it asks the system to kill the process when its parent ends (Linux; elsewhere `_begin` sees to that later).
    """

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        if sys.platform != "linux":
            return str, (str(self),)
        # Nothing but Python's own modules can be imported at that moment.
        set_death_signal = f"__import__('ctypes').CDLL(None).prctl(1, {int(signal.SIGKILL)})"
        parent_lives = f"__import__('os').getppid() == {os.getpid()} or __import__('os')._exit(1)"
        return eval, (f"[{set_death_signal}, {parent_lives}, {str(self)!r}][-1]",)


def _begin(target: Callable[..., None], connection: Connection, arguments: tuple[Any, ...]) -> None:
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    target(connection, *arguments)
