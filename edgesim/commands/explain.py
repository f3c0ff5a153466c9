"""``edgesim explain``: what a key of a config means, its unit, bounds and default, and what it is an option of."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import UNITS
from edgesim.base.registry import did_you_mean
from edgesim.base.validation import models_in
from edgesim.config import RunConfig
from edgesim.learning.algorithms import WRAPPERS
from edgesim.learning.codecs import DOWNWARD
from edgesim.simulation.kinds import KINDS

_UNITS = UNITS | {
    "bits": "bits",
    "per_s": "1/s",
    "s_per_sample": "s per sample",
    "samples_per_s": "samples per s",
}
"""Units by the end of a name, the longest that fits."""
_SYMBOL = re.compile("[a-z]_[a-z]")
"""Symbols of formulas, such as ``a_s``, do not end with a unit."""


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Key:
    """One key of a config."""

    name: str
    """Full name, ``section.key``."""
    owner: str
    """Owner of the option, such as ``policy 'oort'``; empty for keys that every config has."""
    model: type[BaseModel]
    field: FieldInfo

    def line(self) -> str:
        """Type, unit, bounds and default, after the name."""
        last = self.name.rpartition(".")[2]
        parts = [_type(self.field.annotation)]
        ends = [end for end in _UNITS if last.endswith(f"_{end}") and not _SYMBOL.fullmatch(last)]
        parts += [f"in {_UNITS[max(ends, key=len)]}"] if ends else []
        parts += [bounds] if (bounds := _bounds([self.field.annotation, *self.field.metadata])) else []
        default = self.field.get_default(call_default_factory=True, validated_data={})
        if default is PydanticUndefined:
            parts.append("needed")
        else:
            parts.append("absent by default" if default is None else f"default {default!r}")
        of = f" (option of {self.owner})" if self.owner else ""
        return f"{self.name}{of}: {', '.join(parts)}"

    def meaning(self) -> str:
        """Docstring of the key; empty if name and unit suffice."""
        for kind in self.model.__mro__:
            if kind.__module__.startswith("pydantic") or not issubclass(kind, BaseModel):
                break
            if (text := _docstrings(kind).get(self.name.rpartition(".")[2])) is not None:
                return text
        return ""


def explained(name: str) -> list[Key]:
    """The keys that a name stands for: a whole one, the last part of several, or a section with all of its keys.

    Raises `EdgesimError` for a name that is none of these.
    """
    keys = list(_keys())
    matches = [key for key in keys if key.name == name]
    matches = matches or [key for key in keys if key.name.rpartition(".")[0] == name]
    matches = matches or [key for key in keys if key.name.rpartition(".")[2] == name]
    if not matches:
        known = {key.name for key in keys} | {key.name.rpartition(".")[2] for key in keys}
        remedy = did_you_mean(name, known) or "; `edgesim explain` lists the tables of a config"
        raise EdgesimError(f"no key {name!r}{remedy}")
    return matches


def sections() -> list[str]:
    """Names of all tables of a config."""
    return sorted({key.name.rpartition(".")[0] for key in _keys()} - {""})


def key_names() -> list[str]:
    """Names of all keys of a config, sorted."""
    return sorted({key.name for key in _keys()})


def choices(name: str) -> list[str]:
    """Values of a key that is one of a few texts, or true or false; empty for other keys."""
    texts: dict[str, None] = {}
    for key in _keys():
        for branch in _branches(key.field.annotation) if key.name == name else []:
            if get_origin(branch) is Literal:
                texts |= dict.fromkeys(map(str, get_args(branch)))
            elif branch is bool:
                texts |= {"true": None, "false": None}
    return [*texts]


def _keys() -> Iterator[Key]:
    yield from _of(RunConfig, "", "")
    for kind in KINDS.values():
        if kind.section:
            for name, entry in kind.entries.items():
                yield from _of(getattr(entry, "Options", entry), kind.section, f"{kind.word} {name!r}")
    for name, codec in DOWNWARD.items():
        yield from _of(codec, "download", f"codec {name!r}")
    for name, wrapper in WRAPPERS.items():
        yield from _of(wrapper.Options, f"algorithm.{name}", "")


def _of(model: type[BaseModel], section: str, owner: str) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        key = f"{section}.{name}".removeprefix(".")
        if inner := models_in(field.annotation):
            yield from _of(inner[0], key, owner)
        else:
            yield Key(key, owner, model, field)


def _branches(annotation: Any) -> list[Any]:
    """The types of a union, or the one type."""
    if get_origin(annotation) is Annotated:
        return _branches(get_args(annotation)[0])
    if get_origin(annotation) is Union or type(annotation).__name__ == "UnionType":
        return [branch for each in get_args(annotation) for branch in _branches(each)]
    return [annotation]


def _type(annotation: Any) -> str:
    words = []
    for branch in _branches(annotation):
        if get_origin(branch) is Literal:
            words += [repr(value) for value in get_args(branch)]
        elif get_origin(branch) in (list, tuple):
            words.append(f"a list of {_type(get_args(branch)[0])}")
        elif branch is not type(None):
            words.append(_WORDS.get(branch, "a table"))
    return " or ".join(dict.fromkeys(words))


def _bounds(annotations: list[Any]) -> str:
    """``above 0, at most 5``: the tightest bounds among annotations."""
    least: list[tuple[float, str]] = []
    most: list[tuple[float, str]] = []
    for annotation in annotations:
        for part in _parts(annotation):
            for name, word, side in (
                ("ge", "at least", least), ("gt", "above", least), ("le", "at most", most), ("lt", "below", most),
            ):  # fmt: skip
                if (value := getattr(part, name, None)) is not None:
                    side.append((value, word))
    tightest = [max(least)] if least else []
    tightest += [min(most)] if most else []
    return ", ".join(f"{word} {value:g}" for value, word in tightest)


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in (*getattr(annotation, "metadata", ()), *getattr(annotation, "__metadata__", ())):
        yield from _parts(each)
    if get_origin(annotation) is not None and get_origin(annotation) is not Literal:
        for each in get_args(annotation):
            yield from _parts(each)


@cache
def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The text under each field of a class, by its name."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                texts[name] = " ".join(words.split())
    return texts
