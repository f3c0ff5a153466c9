"""Results that several runs share, stored below one folder of the user."""

import hashlib
import inspect
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType

from edgesim.base.lease import Taken, leased, standing
from edgesim.base.paths import system_errors

_REMEDY = "; set EDGESIM_CACHE to a folder with room"


def cache_folder(kind: str) -> Path:
    """Folder of one kind of stored results: below ``$EDGESIM_CACHE``, or else ``~/.cache/edgesim``."""
    root = os.environ.get("EDGESIM_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "edgesim") / kind


def code_digest(*parts: ModuleType | Callable[..., object]) -> str:
    """Hash of the source of modules, classes and functions (SHA-256), for the key of their results."""
    return hashlib.sha256("".join(map(inspect.getsource, parts)).encode()).hexdigest()


@contextmanager
def new_entry(path: Path) -> Iterator[Path]:
    """A path at which to write a file or a folder that becomes ``path`` when the block ends without an error.

    Written beside its place and renamed, so that parallel runs never see half of it; of two that write the same
    folder the first one stays. Raises `EdgesimError` when it cannot be written.
    """
    with system_errors(f"{path.parent}: cannot be written", _REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = Path(folder) / path.name
            yield part
            if not (part.is_dir() and path.exists()):
                part.replace(path)


@contextmanager
def made_by_one(path: Path, notice: Callable[[str], None]) -> Iterator[None]:
    """Within this context other processes that use it do not make the entry ``path``.

    Whoever is in it looks for the entry again, since another process may have made it meanwhile. ``notice`` is called
    where this process has to wait. Raises `EdgesimError` when the cache cannot be written.
    """
    with system_errors(f"{path.parent}: cannot be written", _REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    folder, what = path.with_suffix(".making"), "the place of a stored result"
    with ExitStack() as holds:
        # Where this process waited, or one was killed, the folder was there before and its lease leaves it there.
        holds.callback(_remove_if_empty, folder)
        try:
            holds.enter_context(leased(folder, what))
        except Taken:
            by = standing(folder)
            who = f"process {by.holder.pid} on {by.holder.host}" if by and by.holder else "another process"
            notice(f"waits for {who}, which makes the same")
            holds.enter_context(leased(folder, what, patience_s=math.inf))
        yield


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
