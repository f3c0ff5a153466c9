"""Files in LeCun's IDX format, plain or gzipped: a header of big-endian sizes, then unsigned bytes."""

import gzip
import io
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgesim.base.errors import EdgesimError
from edgesim.base.memory import check_fits
from edgesim.base.paths import system_errors

_UNSIGNED_BYTES = 8


def read_shape(path: Path, dimensions: int) -> tuple[int, ...]:
    """Sizes in the header; raises `EdgesimError` for another type than unsigned bytes or other dimensions."""
    with _open(path) as file:
        return _shape(path, _read(path, file, 4 + 4 * dimensions), dimensions)


def read_array(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The whole array, uint8; raises `EdgesimError`, also when there are fewer or more bytes than the header says."""
    with _open(path) as file:
        shape = _shape(path, _read(path, file, 4 + 4 * dimensions), dimensions)
        check_fits(math.prod(shape), str(path))
        # No more than the header says and one byte, however much a gzipped file unpacks to.
        values = np.frombuffer(_read(path, file, math.prod(shape) + 1), dtype=np.uint8)
    if len(values) > math.prod(shape):
        raise EdgesimError(f"{path}: holds more values than its header says, {math.prod(shape)}")
    if len(values) != math.prod(shape):
        raise EdgesimError(f"{path}: holds {len(values)} values, its header says {math.prod(shape)}")
    return values.reshape(shape)


def _open(path: Path) -> io.BufferedIOBase:
    with system_errors(f"{path}: cannot be read"):
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _read(path: Path, file: io.BufferedIOBase, count: int) -> bytes:
    try:
        return file.read(count)
    except (OSError, EOFError, zlib.error) as error:
        raise EdgesimError(f"{path}: cannot be read: {error}; fetch it again") from None


def _shape(path: Path, content: bytes, dimensions: int) -> tuple[int, ...]:
    if len(content) < 4 + 4 * dimensions or content[:4] != bytes((0, 0, _UNSIGNED_BYTES, dimensions)):
        raise EdgesimError(f"{path}: not an IDX file of {dimensions}-dimensional unsigned bytes")
    return struct.unpack_from(f">{dimensions}I", content, 4)
