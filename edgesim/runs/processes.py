"""Processor cores, worker processes, and the lock of a folder that one process writes to."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from pathlib import Path

from edgesim.errors import EdgesimError


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Processes started within this context ignore Ctrl-C: their parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Alone:
    """The lock of a folder, held by this process until `release` or until the process ends, even when killed.

    Raises `EdgesimError` if another process holds it. Systems without such locks (Windows) and folders without
    (some network drives) are not locked.
    """

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        try:
            import fcntl
        except ImportError:
            return
        self._handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise EdgesimError(
                f"{folder}: another process is writing there; wait for it, or choose another --out"
            ) from None
        except OSError:
            pass

    def release(self) -> None:
        """Let other processes write to the folder."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def end_with_parent() -> None:
    """From now on this process ends when its parent process ends, even if the parent was killed."""
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
