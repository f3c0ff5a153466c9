"""Files of text that may be packed with gzip, read in pieces of bounded size."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import system_errors

PIECE = 1 << 16
"""Bytes that are read at once."""
_LONGEST_WORD = 100


@contextmanager
def unpacked(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a file, unpacked where it is packed; raises `EdgesimError` if it cannot be read or unpacked."""
    with system_errors(f"{path}: cannot be read"), path.open("rb") as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        try:
            yield gzip.GzipFile(fileobj=file) if packed else file
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise EdgesimError(f"{path}: is not a whole gzip file: {error}") from None


def head(path: Path) -> bytes:
    """The first bytes of a file, unpacked where it is packed; raises `EdgesimError` as `unpacked`."""
    with unpacked(path) as file:
        return file.read(PIECE)


def lines(path: Path, file: BufferedIOBase) -> Iterator[str]:
    """Lines of a file; raises `EdgesimError` for one that is longer than any table's or is no text in UTF-8."""
    for number, line in enumerate(iter(lambda: file.readline(PIECE), b""), 1):
        if len(line) == PIECE:
            raise EdgesimError(f"{path}: line {number}: expected lines of fewer than {PIECE:,} bytes")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise EdgesimError(f"{path}: line {number}: expected text in UTF-8") from None


def words(path: Path, file: BufferedIOBase) -> Iterator[tuple[int, str]]:
    """Words of a file of any width, each with its line; raises `EdgesimError` for one longer than any number."""
    line, begun = 1, b""
    for piece in iter(lambda: file.readline(PIECE), b""):
        found = (begun + piece).split()
        begun = b"" if piece[-1:].isspace() or not found else found.pop()
        if len(begun) > _LONGEST_WORD:
            raise EdgesimError(f"{path}: line {line}: expected numbers (got {len(begun):,} characters without a blank)")
        for word in found:
            yield line, word.decode("latin-1")
        line += piece.endswith(b"\n")
    if begun:
        yield line, begun.decode("latin-1")
