"""The lease of a folder: one process at a time writes there, on this machine or on another that shares the folder.

The holder of a file ``lease-NUMBER.json`` in the folder has it, and touches it now and then. It is created exclusively,
which network drives keep where their locks do not hold. A lease whose holder is gone is taken over by creating the one
with the next number, so that of two that try at once one fails. Whether a holder is gone is known at once on its own
machine, by the process; elsewhere it is when it has not touched its lease for `LEASE_S` of the file system's clock,
since clocks of machines differ.
"""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import refuse_foreign, system_errors

LEASE_S = 60.0
"""Seconds after which a holder on another machine that has not touched its lease counts as gone."""
_BEAT_S = LEASE_S / 6
_NAME = re.compile(r"lease-(\d{4,})\.json")
_FILES = "lease-*"


class Taken(EdgesimError):  # noqa: N818 - reads as what it is
    """Another process holds the lease."""


@dataclass(frozen=True)
class Holder:
    """The process that holds, or held, a lease."""

    host: str
    machine: str
    """Text that processes which see one another's ids have in common."""
    pid: int
    started: str
    """Start of the process, as its system writes it."""
    token: str
    """Random text that no other lease has."""


@dataclass(frozen=True)
class Standing:
    """A lease as last seen in its folder."""

    number: int
    path: Path
    holder: Holder | None
    """None where the holder has not written its name yet, or never will, on a file system without links."""
    beat_s: float
    """Instant at which the holder last touched the lease, by the file system's clock."""

    @property
    def silent_s(self) -> float:
        """Seconds since the holder last touched the lease."""
        return _now_s(self.path.parent) - self.beat_s

    @property
    def is_held(self) -> bool:
        """Whether a living process holds the lease."""
        if self.holder is not None and self.holder.machine == _machine():
            return _started(self.holder.pid) == self.holder.started
        return self.silent_s <= LEASE_S


def standing(folder: Path) -> Standing | None:
    """The lease of a folder, held or not; None if there is none.

    Raises `EdgesimError` for a link or anything else by the name of a lease that is no file.
    """
    for number, path in sorted(_leases(folder), reverse=True):
        # Opened, so that a network drive asks the server for the time of its last change.
        with suppress(FileNotFoundError), path.open(encoding="utf-8") as file:
            beat_s = os.fstat(file.fileno()).st_mtime
            try:
                holder = Holder(**json.load(file))
            except (ValueError, TypeError):
                holder = None
            return Standing(number, path, holder, beat_s)
    return None


def is_of_lease(name: str) -> bool:
    """Whether a file of this name is one that a lease leaves in its folder."""
    return name.startswith("lease-")


class Lease:
    """The lease of a folder, which is made if need be, held until `release` or until this process ends.

    Whoever has it may write any name there: anything below the folder but files and folders is refused. Raises `Taken`
    if another process has it, and `EdgesimError` where the folder cannot be made or written to.
    """

    def __init__(self, folder: Path, what: str = "a run folder") -> None:
        """``what`` is what the folder is to be, for errors."""
        self._folder = folder
        self._made = [path for path in (folder, *folder.parents) if not path.exists()]
        pid = os.getpid()
        holder = Holder(socket.gethostname(), _machine(), pid, _started(pid), secrets.token_hex(8))
        self._text = json.dumps(asdict(holder))
        try:
            with system_errors(f"{folder}: cannot be made {what}", "; choose another folder"):
                self._path = self._created()
        except BaseException:
            self._remove_made()
            raise
        self._over = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def _created(self) -> Path:
        while True:
            # Again each time: the process that had it last may have removed the folder that it made.
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except FileExistsError:
                if os.path.lexists(self._folder) and not self._folder.is_dir():
                    raise
                # It went while mkdir looked what is there.
                continue
            refuse_foreign(self._folder)
            before = standing(self._folder)
            if before is not None and before.is_held:
                raise _taken(self._folder, before)
            number = 1 if before is None else before.number + 1
            path = self._folder / f"lease-{number:04d}.json"
            if not self._create(path):
                # Another process was faster.
                continue
            try:
                # Where this process slept after it had looked, others may have had the folder meanwhile.
                others = {number: other for number, other in _leases(self._folder) if other != path}
                last = None if not others else others[max(others)]
                if last == (None if before is None else before.path) and (before is None or _is(before)):
                    for other in others.values():
                        other.unlink(missing_ok=True)
                    return path
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            path.unlink(missing_ok=True)

    def _create(self, path: Path) -> bool:
        """Create a lease that names its holder, whole even if this process is killed; False if the file exists."""
        part = self._folder / f"lease-{secrets.token_hex(8)}.part"
        try:
            part.write_text(self._text, encoding="utf-8")
            try:
                os.link(part, path)
            except FileExistsError:
                # A network drive may say so of a link that it made when it was asked before.
                return part.stat().st_nlink > 1
            except OSError:
                # A file system without links: the name follows at once.
                with path.open("x", encoding="utf-8") as file:
                    file.write(self._text)
            return True
        except (FileExistsError, FileNotFoundError):
            # The other process tidies up behind itself.
            return False
        finally:
            part.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._over.wait(_BEAT_S):
            with suppress(OSError):
                os.utime(self._path)

    def check(self) -> None:
        """Raises `Taken` if another process has taken the lease over, since this one was silent for `LEASE_S`.

        Raises `EdgesimError` if the folder is no longer there.
        """
        try:
            if self._path.read_text(encoding="utf-8") == self._text:
                return
        except FileNotFoundError:
            if not self._folder.is_dir():
                raise EdgesimError(
                    f"{self._folder}: the folder was removed during its run; nothing more is written"
                ) from None
        raise Taken(
            f"{self._folder}: another process has resumed it, since this one was not heard of for more than "
            f"{LEASE_S:g} s; nothing more is written"
        )

    def release(self) -> None:
        """Give the lease back; an empty folder that was made for it is removed."""
        if self._over.is_set():
            return
        self._over.set()
        with suppress(OSError, EdgesimError):
            self.check()
            for path in (self._path, *self._folder.glob("lease-*.part")):
                path.unlink(missing_ok=True)
        self._remove_made()

    def _remove_made(self) -> None:
        with suppress(OSError):
            for folder in self._made:
                folder.rmdir()


@contextmanager
def leased(folder: Path, what: str = "a run folder", patience_s: float = 0.0) -> Iterator[Lease]:
    """Hold the lease of a folder within this context; raises as `Lease` if it is not free within ``patience_s``."""
    until_s = time.monotonic() + patience_s
    pause_s = 0.05
    while True:
        try:
            lease = Lease(folder, what)
            break
        except Taken:
            if time.monotonic() >= until_s:
                raise
        time.sleep(pause_s)
        # A look costs a network drive several calls, and many may wait for as long as a training takes.
        pause_s = min(2 * pause_s, 2.0)
    try:
        yield lease
    finally:
        lease.release()


def _leases(folder: Path) -> list[tuple[int, Path]]:
    try:
        with os.scandir(folder) as entries:
            there = [(int(match[1]), entry) for entry in entries if (match := _NAME.fullmatch(entry.name))]
    except (FileNotFoundError, NotADirectoryError):
        return []
    for _, entry in there:
        if not entry.is_file(follow_symlinks=False):
            raise EdgesimError(f"{folder / entry.name}: expected the file of a lease, which this is not; remove it")
    return [(number, folder / entry.name) for number, entry in there]


def _taken(folder: Path, by: Standing) -> Taken:
    who = "" if by.holder is None else f" (process {by.holder.pid} on {by.holder.host})"
    return Taken(f"{folder}: another process is writing there{who}; wait for it, or choose another folder")


def _is(before: Standing) -> bool:
    """Whether the file of a lease still names the holder seen before."""
    try:
        with before.path.open(encoding="utf-8") as file:
            holder = None if before.holder is None else json.dumps(asdict(before.holder))
            return holder is None or file.read() == holder
    except FileNotFoundError:
        return False


def _now_s(folder: Path) -> float:
    """Time in s by the clock of a folder's file system; by this machine's clock where nothing can be written."""
    try:
        handle, name = tempfile.mkstemp(prefix="lease-", suffix=".part", dir=folder)
    except OSError:
        return time.time()
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
        with suppress(FileNotFoundError):
            os.unlink(name)


@cache
def _machine() -> str:
    """Text that names the machine since its last start, and the container: its processes see one another's ids."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _started(pid: int) -> str:
    """Start of a process, as its system writes it; empty if the process has ended."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    asked = ["ps", "-o", "lstart=", "-p", str(pid)]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
