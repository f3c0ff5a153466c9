"""Reading pickles of strangers: only containers, numbers, strings and NumPy arrays are ever built."""

import pickle
from pathlib import Path
from typing import IO, Any

import numpy as np

from edgesim.errors import EdgesimError

# Not imported by name: NumPy 2 moved the module and warns about the old one.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_SCALAR = np.float64(0).__reduce__()[0]


class _RefusedError(Exception):
    pass


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise _RefusedError(f"the codec {encoding}")
    return text.encode(encoding)


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    _ALLOWED[_module, "_reconstruct"] = _RECONSTRUCT
    _ALLOWED[_module, "scalar"] = _SCALAR


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def load_plain(file: IO[bytes]) -> Any:
    """Unpickle dict, list, tuple, str, bytes, int, float, bool and NumPy arrays and scalars.

    Byte strings written by Python 2 come back as latin-1 text. Raises `pickle.UnpicklingError` that names the
    first class or function asked for that is not one of these; nothing of it is imported or called.
    """
    try:
        return _RestrictedUnpickler(file, encoding="latin1").load()
    except _RefusedError as error:
        raise pickle.UnpicklingError(
            f"asks for {error}, but only containers, numbers, strings and arrays are read"
        ) from None


def read_plain(path: Path) -> Any:
    """`load_plain` of a file; raises `EdgesimError` that names the file."""
    try:
        with path.open("rb") as file:
            return load_plain(file)
    except OSError as error:
        raise EdgesimError(f"{path}: cannot be read: {error.strerror}") from None
    except Exception as error:  # a broken pickle can raise nearly anything
        raise EdgesimError(f"{path}: not a pickle of plain data: {error}") from None
