"""Columns of numbers in a page: small enough to travel in it, and quick to unpack in a browser (``columns.js``)."""

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError

Packed = dict[str, str]
"""A column: ``code`` says how ``data`` (base64 of zlib) was coded."""

_LEVEL = 6


def whole(values: ArrayLike) -> Packed:
    """Integers of 32 bits as differences from the value before, for columns in which neighbours are alike.

    Raises `EdgesimError` for values that 32 bits cannot hold.
    """
    # A difference beyond 32 bits wraps round, and so does the sum that undoes it.
    return _packed("whole", _planes(np.diff(_narrow(values), prepend=0)))


def apart(values: ArrayLike) -> Packed:
    """Integers of 32 bits as they are, for columns in which neighbours have nothing to do with each other.

    Raises `EdgesimError` for values that 32 bits cannot hold.
    """
    return _packed("apart", _planes(_narrow(values)))


def small(values: ArrayLike) -> Packed:
    """Integers from 0 to 255."""
    return _packed("small", np.asarray(values, dtype=np.uint8).tobytes())


def exact(values: ArrayLike) -> Packed:
    """Numbers with all their bits; NaN stands for a value that is not known."""
    return _packed("exact", np.asarray(values, dtype="<f8").tobytes())


def script_json(value: Any) -> str:
    """JSON that can stand in a ``<script>`` element whatever texts it holds."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _narrow(values: ArrayLike) -> Integers:
    column = np.asarray(values, dtype=np.int64)
    if column.size and max(-int(column.min()), int(column.max())) >= 2**31:
        raise EdgesimError(f"a column of the page holds {np.abs(column).max()}; expected numbers below 2^31")
    return column


def _planes(column: Integers) -> bytes:
    """The lowest bytes of all numbers, then the next ones: those of small numbers are long runs of zeros."""
    return column.astype(np.uint32).astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes()


def _packed(code: str, data: bytes) -> Packed:
    return {"code": code, "data": base64.b64encode(zlib.compress(data, _LEVEL)).decode()}
