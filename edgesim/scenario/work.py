"""Work of scenarios without a study: calls in several processes, and files that are made again only when outdated."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from edgesim.analysis.products import Products, digest_of
from edgesim.base.file_digest import file_digest
from edgesim.base.processes import cores

__all__ = ["Kept", "in_processes"]

R = TypeVar("R")
_PACKAGE = Path(__file__).parents[1]
_NAME = "scenario"


def in_processes(act: Callable[..., R], arguments: Sequence[tuple[Any, ...]], jobs: int | None) -> list[R]:
    """Call a function of a module with each of the ``arguments``; returns the results in their order.

    ``jobs`` processes are at work at a time, one per core when absent; with one all is done in this process.
    """
    at_once = min(jobs or cores(), len(arguments))
    if at_once < 2:
        return [act(*some) for some in arguments]
    with ProcessPoolExecutor(at_once, get_context("spawn")) as pool:
        return [some.result() for some in [pool.submit(act, *some) for some in arguments]]


class Kept:
    """The files that a scenario writes into a folder, and a digest of their inputs."""

    def __init__(self, out: Path, read: Sequence[str], *facts: object) -> None:
        """``read`` are paths of files that are read, or names that are no files; ``facts`` what else matters."""
        self._out = out
        files = [Path(name) for name in read]
        contents = [file_digest(file).hex() if file.is_file() else file.name for file in files]
        self._digest = digest_of([], _code(), contents, *facts)

    @property
    def is_current(self) -> bool:
        """Whether the files are there and would be the same again."""
        return Products(self._out).current(_NAME, self._digest) is not None

    def keep(self, files: Sequence[Path]) -> None:
        """Note the files that were made."""
        Products(self._out).note(_NAME, self._digest, files)


def _code() -> str:
    """Hash of all sources of edgesim."""
    digest = sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE)} {file_digest(path).hex()}\n".encode())
    return digest.hexdigest()
