"""Reading pickles of strangers: only containers, numbers, strings and, where wanted, NumPy arrays are ever built."""

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


_SCALARS: dict[tuple[str, str], Any] = {("numpy", "dtype"): np.dtype, ("_codecs", "encode"): _encode}
_ARRAYS: dict[tuple[str, str], Any] = {("numpy", "ndarray"): np.ndarray}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    _SCALARS[_module, "scalar"] = _SCALAR
    _ARRAYS[_module, "_reconstruct"] = _RECONSTRUCT


class _RestrictedUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], allowed: dict[tuple[str, str], Any]) -> None:
        super().__init__(file, encoding="latin1")
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._allowed[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def load_plain(file: IO[bytes], arrays: bool = False) -> Any:
    """Unpickle dict, list, tuple, str, bytes, int, float, bool and NumPy scalars, and NumPy ``arrays`` if wanted.

    Byte strings written by Python 2 come back as latin-1 text. Raises `pickle.UnpicklingError` that names the
    first class or function asked for that is not one of these; nothing of it is imported or called.
    """
    try:
        return _RestrictedUnpickler(file, _SCALARS | _ARRAYS if arrays else _SCALARS).load()
    except _RefusedError as error:
        kinds = "containers, numbers, strings and arrays" if arrays else "containers, numbers and strings"
        raise pickle.UnpicklingError(f"asks for {error}, but only {kinds} are read") from None


def read_plain(path: Path, arrays: bool = False) -> Any:
    """`load_plain` of a file; raises `EdgesimError` that names the file."""
    try:
        with path.open("rb") as file:
            return load_plain(file, arrays)
    except OSError as error:
        raise EdgesimError(f"{path}: cannot be read: {error.strerror}") from None
    except Exception as error:  # a broken pickle can raise nearly anything
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EdgesimError(f"{path}: not a pickle of plain data: {reason}") from None
