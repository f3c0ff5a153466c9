"""Records as plain JSON and named arrays, and back, without pickle: what a run remembers, ready to be written.

A record is a data class whose fields hold numbers, texts, None, NumPy arrays, torch tensors, other records, and lists,
tuples, dicts, sets and deques of these; keys of dicts and members of sets are numbers, texts and tuples of them. All
of it comes back as it was: types, order, the last bit of every number, and one object where one object lay in several
places. Arrays and tensors are named after their first place in the record, such as ``record.log.ring``.

In the JSON null, true, whole and finite numbers, texts and lists stand for themselves; all else is an object whose
first key says what it is: ``{"tuple": [...]}``, ``{"float": "inf"}``, ``{"same": "record.log"}``.
"""

import math
import sys
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgesim.base.errors import EdgesimError

Record = TypeVar("Record")
Arrays = dict[str, NDArray[Any]]

_ROOT = "record"
_PACKAGE = __name__.partition(".")[0]
_DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
_DTYPES |= {"float16", "float32", "float64"}
_NATIVE = frozenset(np.dtype(name) for name in _DTYPES)
_EXPECTED = "numbers, texts, arrays, data classes, and lists, tuples, dicts, sets and deques of these"


def pack(record: Any) -> tuple[Any, Arrays]:
    """JSON without nan and infinities, and arrays by name; those of a torch tensor's values are arrays too.

    The arrays share their memory with the record: write or copy them before it changes. Raises `EdgesimError` that
    names the place of anything that cannot be saved.
    """
    packer = _Packer()
    return packer.node(record, _ROOT), packer.arrays


def unpack(kind: type[Record], packed: Any, arrays: Arrays, modules: Collection[str] = ()) -> Record:
    """The record of type ``kind`` that `pack` made into these; it takes over the arrays that can be written to.

    Only data classes of edgesim, and of ``modules`` by their names, are made, only where their module is loaded
    already, and no code of theirs runs. Raises `EdgesimError` for anything that `pack` does not write.
    """
    unpacker = _Unpacker(arrays, {kind.__module__, *modules})
    try:
        record = unpacker.value(packed, _ROOT)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise _damaged(unpacker.place, str(error).partition("\n")[0]) from None
    if type(record) is not kind:
        raise _damaged(_ROOT, f"expected a {kind.__name__} (got a {type(record).__name__})")
    return record


def saved_attributes(of: Any) -> dict[str, Any]:
    """Snapshot of an object between two rounds: the attributes that its class names in ``SAVED``, by name."""
    return {name: getattr(of, name) for name in of.SAVED}


def restore_attributes(to: Any, remembered: Mapping[str, Any]) -> None:
    """Restore an object from its `saved_attributes`; raises `EdgesimError` for attributes other than `SAVED`."""
    if remembered.keys() != set(to.SAVED):
        raise _damaged(type(to).__name__, f"expected {', '.join(to.SAVED)} (got {', '.join(remembered)})")
    for name, value in remembered.items():
        setattr(to, name, value)


class _Packer:
    """Describes values, each object once."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.places: dict[int, str] = {}
        """First place of every object that may lie in several places, by its identity."""

    def node(self, value: Any, place: str) -> Any:
        """The JSON of a value; `EdgesimError` for one that cannot be saved."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic) and value.dtype in _NATIVE:
            return {"scalar": self.node(value.item(), place), "dtype": value.dtype.name}
        if kind is tuple:
            return {"tuple": self._items(value, place)}
        if id(value) in self.places:
            return {"same": self.places[id(value)]}
        self.places[id(value)] = place
        if kind is list:
            return self._items(value, place)
        if kind is deque:
            return {"deque": self._items(value, place), "most": value.maxlen}
        if kind is set:
            return {"set": [self._key(member, place) for member in sorted(value, key=repr)]}
        if kind is dict:
            return {"dict": [[self._key(key, place), self.node(of, f"{place}[{key!r}]")] for key, of in value.items()]}
        if is_dataclass(kind):
            return self._record(value, place)
        if kind is np.ndarray and value.dtype in _NATIVE:
            return {"array": place, **self._keep(value, place)}
        torch = sys.modules.get("torch")
        if torch is not None and kind is torch.Tensor:
            return self._tensor(value, place)
        raise EdgesimError(f"{place}: cannot save a {_called(value)}; expected {_EXPECTED}")

    def _items(self, values: Iterable[Any], place: str) -> list[Any]:
        return [self.node(value, f"{place}[{number}]") for number, value in enumerate(values)]

    def _key(self, key: Any, place: str) -> Any:
        """The JSON of a key of a dict or of a member of a set; raises `EdgesimError` for anything but plain values."""
        if _is_plain(key):
            return self.node(key, place)
        raise EdgesimError(f"{place}: cannot save a {_called(key)} as a key or in a set; expected numbers and texts")

    def _record(self, value: Any, place: str) -> dict[str, Any]:
        kind = type(value)
        if _class_of(kind.__module__, kind.__qualname__) is not kind:
            raise EdgesimError(f"{place}: cannot save a {kind.__qualname__}; define it at the top of its module")
        names = [field.name for field in fields(value)]
        for other in getattr(value, "__dict__", {}).keys() - set(names):
            if not isinstance(getattr(kind, other, None), cached_property):
                raise EdgesimError(f"{place}.{other}: is no field of {kind.__name__} and would be lost; declare it")
        if missing := [name for name in names if not hasattr(value, name)]:
            raise EdgesimError(f"{place}.{missing[0]}: has no value yet, and a {kind.__name__} is saved whole")
        described = {name: self.node(getattr(value, name), f"{place}.{name}") for name in names}
        return {"record": f"{kind.__module__}:{kind.__qualname__}", "fields": described}

    def _keep(self, array: NDArray[Any], place: str) -> dict[str, Any]:
        """Keep an array; unless it is in C order, with the order of its axes in memory, by which sums are rounded."""
        if array.flags.c_contiguous:
            self.arrays[place] = array
            return {}
        axes = np.argsort([-stride for stride in array.strides], kind="stable")
        dense = array.transpose(axes).flags.c_contiguous
        self.arrays[place] = array.transpose(axes) if dense else np.asarray(array, order="C")
        return {"axes": axes.tolist()} if dense else {}

    def _tensor(self, tensor: Any, place: str) -> dict[str, Any]:
        torch, dtype = sys.modules["torch"], str(tensor.dtype).removeprefix("torch.")
        if dtype not in {*_DTYPES, "bfloat16"} or tensor.layout != torch.strided or tensor.requires_grad:
            reason = " that requires a gradient; detach it" if tensor.requires_grad else f" of {dtype}"
            raise EdgesimError(f"{place}: cannot save a tensor{reason}")
        # NumPy has no bfloat16.
        values = (tensor.view(torch.int16) if dtype == "bfloat16" else tensor).cpu().numpy()
        return {"tensor": place, "dtype": dtype, "device": str(tensor.device), **self._keep(values, place)}


class _Unpacker:
    """Makes values from their JSON, in the order in which it was written."""

    def __init__(self, arrays: Arrays, modules: Collection[str]) -> None:
        self.arrays, self.modules = arrays, modules
        self.place = _ROOT
        """Place of the node read last, for messages."""
        self.objects: dict[str, Any] = {}
        """Objects that may lie in several places, by the first of these."""

    def value(self, node: Any, place: str) -> Any:
        """The value that a node describes; raises any of several errors for one that `pack` does not write."""
        self.place = place
        if node is None or type(node) in (bool, int, float, str):
            return node
        match node:
            case list(items):
                container = self._remember(place, [])
                container.extend(self._items(items, place))
                return container
            case {"float": "inf" | "-inf" | "nan" as text}:
                return float(text)
            case {"scalar": scalar, "dtype": str(name)} if name in _DTYPES:
                number = self.value(scalar, place)
                if type(number) in (bool, int, float):
                    return np.dtype(name).type(number)
            case {"tuple": list(items)}:
                return tuple(self._items(items, place))
            case {"same": str(first)} if first in self.objects:
                return self.objects[first]
            case {"deque": list(items), "most": int() | None as most}:
                container = self._remember(place, deque(maxlen=most))
                container.extend(self._items(items, place))
                return container
            case {"set": list(items)}:
                return self._remember(place, {self.value(item, place) for item in items})
            case {"dict": list(pairs)}:
                container = self._remember(place, {})
                for key_node, of in pairs:
                    key = self.value(key_node, place)
                    container[key] = self.value(of, f"{place}[{key!r}]")
                return container
            case {"record": str(name), "fields": dict(described)}:
                return self._record(name, described, place)
            case {"array": str(name)}:
                return self._remember(place, self._array(name, node))
            case {"tensor": str(name), "dtype": str(dtype), "device": str(device)}:
                import torch

                tensor = torch.from_numpy(self._array(name, node))
                tensor = tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor
                return self._remember(place, tensor.to(device))
        raise ValueError("is not what was written")

    def _items(self, nodes: list[Any], place: str) -> Iterable[Any]:
        return (self.value(node, f"{place}[{number}]") for number, node in enumerate(nodes))

    def _remember(self, place: str, made: Any) -> Any:
        self.objects[place] = made
        return made

    def _record(self, name: str, described: dict[str, Any], place: str) -> Any:
        module, _, qualname = name.partition(":")
        if module.partition(".")[0] != _PACKAGE and module not in self.modules:
            raise ValueError(f"{name} is not of edgesim, nor of a module that the run names")
        kind = _class_of(module, qualname)
        if kind is None:
            raise ValueError(f"there is no data class {name}")
        names = [field.name for field in fields(kind)]
        if described.keys() != set(names):
            raise ValueError(f"{kind.__name__} has the fields {', '.join(names)} (got {', '.join(described)})")
        record = self._remember(place, object.__new__(kind))
        for field in names:
            object.__setattr__(record, field, self.value(described[field], f"{place}.{field}"))
        return record

    def _array(self, name: str, node: Mapping[str, Any]) -> NDArray[Any]:
        array = self.arrays[name]
        axes = node.get("axes")
        if axes is not None:
            array = array.transpose(np.argsort(axes))
        return array if array.flags.writeable else array.copy(order="K")


def _class_of(module: str, qualname: str) -> Any:
    """The data class of a module that is loaded, or None; nothing is imported for it."""
    target: Any = sys.modules.get(module)
    for part in qualname.split("."):
        target = getattr(target, "__dict__", {}).get(part)
    here = isinstance(target, type) and is_dataclass(target)
    return target if here and (target.__module__, target.__qualname__) == (module, qualname) else None


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def _called(value: Any) -> str:
    kind = type(value)
    return f"{kind.__name__} of {value.dtype}" if isinstance(value, np.ndarray | np.generic) else kind.__name__


def _damaged(place: str, what: str) -> EdgesimError:
    return EdgesimError(f"saved {place}: {what}; the saved file is damaged or of another version")
