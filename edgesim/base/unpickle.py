"""Reading untrusted pickles: only containers, numbers, strings and, where wanted, NumPy arrays are ever built.

NumPy's own unpickling trusts the state that a file gives its objects, so the file never gets NumPy's classes: dtypes
are looked up by name, and scalars and arrays are copied out of bytes.
"""

import io
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.base.memory import check_fits
from edgesim.base.paths import system_errors

_ATOMS = frozenset({type(None), bool, int, float, str, bytes})
_KINDS = {code: np.dtype(code) for code in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")}
_NUMBERS = frozenset(dtype.type for dtype in _KINDS.values())


class _RefusedError(Exception):
    pass


class _DType:
    """Stands in for a NumPy dtype of booleans or numbers, of which a file sets kind, size and byte order alone."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or code not in _KINDS:
            raise _RefusedError(f"the NumPy type {code!r}")
        self.real = _KINDS[code]

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        if order not in ("<", ">", "|", "=") or any(part is not None for part in state[2:5]):
            raise _RefusedError("a NumPy type with a state of its own")
        self.real = self.real.newbyteorder(order)


class _Array:
    """Stands in for an array; ``real`` is None until its state has been read."""

    real: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, raw = state
        if type(shape) is not tuple or any(type(length) is not int or length < 0 for length in shape):
            raise _RefusedError("an array without a shape")
        self.real = _values(dtype, raw, math.prod(shape)).reshape(shape, order="F" if is_fortran else "C")


def _values(dtype: Any, raw: Any, count: int) -> np.ndarray:
    # Byte strings of Python 2 arrive as text.
    data = raw.encode("latin1") if isinstance(raw, str) else raw
    if type(dtype) is not _DType or type(data) is not bytes or len(data) != count * dtype.real.itemsize:
        raise _RefusedError("NumPy values that are not the bytes of their type")
    return np.frombuffer(data, dtype.real, count).copy() if count else np.empty(0, dtype.real)


def _ndarray(*_: Any) -> None:
    raise _RefusedError("an array that is not made by numpy's _reconstruct")


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise _RefusedError(f"the codec {encoding}")
    return text.encode(encoding)


@dataclass(frozen=True)
class _Callable:
    """Wrapper of the functions that a pickle may call; unlike a class or function, the pickle cannot modify it."""

    call: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    def __setstate__(self, _: Any) -> None:
        raise _RefusedError("a change of the reader")


_SCALARS = {("numpy", "dtype"): _Callable(_DType), ("_codecs", "encode"): _Callable(_encode)}
_ARRAYS = {("numpy", "ndarray"): _Callable(_ndarray)}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    _SCALARS[_module, "scalar"] = _Callable(lambda dtype, raw: _values(dtype, raw, 1)[0])
    _ARRAYS[_module, "_reconstruct"] = _Callable(lambda *_: _Array())


def _refusal(kind: str) -> Callable[[Any], None]:
    """Handler of a pickle's opcode that would make an object of a refused kind."""

    def refuse(_: Any) -> None:
        raise _RefusedError(kind)

    return refuse


_InPython: Any = vars(pickle)["_Unpickler"]


class _RestrictedUnpickler(_InPython):  # type: ignore[misc]
    """Python's unpickler in Python: that in C makes its memo table as long as a file says, and hashes any key.

    A tuple of tuples that are one another many times over is small, but hashing it takes for ever.
    """

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_InPython.dispatch)

    def __init__(self, file: IO[bytes], allowed: dict[tuple[str, str], _Callable]) -> None:
        super().__init__(file, encoding="latin1")
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._allowed[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None

    def _set_item(self) -> None:
        _check_keys(self.stack[-2:-1])
        self.load_setitem()

    def _set_items(self) -> None:
        _check_keys(self.stack[::2])
        self.load_setitems()

    def _make_dict(self) -> None:
        _check_keys(self.stack[::2])
        self.load_dict()

    dispatch |= {pickle.SETITEM[0]: _set_item, pickle.SETITEMS[0]: _set_items, pickle.DICT[0]: _make_dict}
    dispatch |= {pickle.ADDITEMS[0]: _refusal("a set"), pickle.FROZENSET[0]: _refusal("a frozenset")}
    # The first makes as many zeros as a file asks for.
    _buffers = (pickle.BYTEARRAY8[0], pickle.NEXT_BUFFER[0], pickle.READONLY_BUFFER[0])
    dispatch |= dict.fromkeys(_buffers, _refusal("a bytearray"))


_MOST_KEY_BITS = 64


def _check_keys(keys: list[Any]) -> None:
    if not (_ATOMS | _NUMBERS).issuperset(map(type, keys)):
        raise _RefusedError("a dict with keys that are no numbers or texts")
    # Numbers that are multiples of the modulus of hashes would all hash alike.
    if any(type(key) is int and key.bit_length() > _MOST_KEY_BITS for key in keys):
        raise _RefusedError(f"a dict with numbers of more than {_MOST_KEY_BITS} bits as keys")


@dataclass
class _Plain:
    """Converts a loaded object to plain data: stand-ins become arrays, and objects of unknown types are refused."""

    converted: dict[int, Any] = field(default_factory=dict)
    """Converted objects by the identity of the loaded one, so that an object met many times is converted once."""

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind in _ATOMS or kind in _NUMBERS:
            return value
        if id(value) not in self.converted:
            # Marks the conversion as unfinished: meeting the mark below means that the container holds itself.
            self.converted[id(value)] = _RefusedError
            self.converted[id(value)] = self._convert(kind, value)
        if self.converted[id(value)] is _RefusedError:
            raise _RefusedError("a container that holds itself")
        return self.converted[id(value)]

    def _convert(self, kind: type, value: Any) -> Any:
        if kind in (list, tuple):
            # Most of a large file is lists of numbers, whose types are checked without a loop in Python.
            return value if _ATOMS.issuperset(map(type, value)) else kind(map(self.of, value))
        if kind is dict:
            return {self.of(key): self.of(item) for key, item in value.items()}
        if kind is _Array and value.real is not None:
            return value.real
        raise _RefusedError(f"a {kind.__name__.strip('_')}")


def load_plain(file: IO[bytes], arrays: bool = False) -> Any:
    """Unpickle dict, list, tuple, str, bytes, int, float, bool, None, NumPy scalars, and NumPy ``arrays`` if wanted.

    NumPy values may be booleans, integers and floats. Byte strings written by Python 2 come back as latin-1 text.
    Raises `pickle.UnpicklingError` that names the first class, function or type that the file asks for beyond these,
    which is neither imported nor called.
    """
    try:
        return _Plain().of(_RestrictedUnpickler(file, _SCALARS | _ARRAYS if arrays else _SCALARS).load())
    except _RefusedError as error:
        kinds = "containers, numbers, strings and arrays" if arrays else "containers, numbers and strings"
        raise pickle.UnpicklingError(f"asks for {error}, but only {kinds} are read") from None


def read_plain(path: Path, arrays: bool = False) -> Any:
    """`load_plain` of a file; raises `EdgesimError` that names the file."""
    try:
        with system_errors(f"{path}: cannot be read"):
            check_fits(path.stat().st_size, str(path))
            return load_plain(io.BytesIO(path.read_bytes()), arrays)
    except EdgesimError:
        raise
    except Exception as error:  # a broken pickle can raise nearly anything
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EdgesimError(f"{path}: not a pickle of plain data: {reason}") from None
