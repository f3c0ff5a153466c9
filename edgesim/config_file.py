"""Reading of a checked `RunConfig` from TOML, mappings and overrides."""

import copy
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import as_path
from edgesim.base.text_file import parse_toml, read_toml
from edgesim.base.validation import first_error
from edgesim.config import RunConfig


def parse(values: Mapping[str, Any], where: str) -> RunConfig:
    """Check a plain nested mapping; raises `EdgesimError` that names ``where``, the key and what was expected."""
    return parse_with(lambda _: values, (), where)


def parse_with(values: Callable[[Sequence[str]], Mapping[str, Any]], overrides: Sequence[str], where: str) -> RunConfig:
    """Check ``values(overrides)``, a nested mapping with ``section.key=value`` overrides; raises `EdgesimError`.

    An error that the overrides cause names those that set its key, or else all of them.
    """
    nested = values(overrides)
    if "study" in nested:
        raise EdgesimError(f"{where}: [study] makes this a study, not a run; `edgesim study run` runs it", "study")
    try:
        return RunConfig.model_validate(nested)
    except ValidationError as error:
        key, words, fields = first_error(RunConfig, error)
    if overrides:
        try:
            RunConfig.model_validate(values(()))
            alone = None
        except ValidationError as error:
            alone = first_error(RunConfig, error)
        if alone != (key, words, fields):
            where = f"set {' '.join(_causes(overrides, fields) or overrides)}"
    raise EdgesimError(f"{where}: {words}", *fields)


@contextmanager
def overrides_named(overrides: Sequence[str]) -> Iterator[None]:
    """Name in an `EdgesimError` the ``section.key=value`` overrides that set the fields of which it complains."""
    try:
        yield
    except EdgesimError as error:
        if not (causes := _causes(overrides, error.fields)):
            raise
        raise type(error)(f"set {' '.join(causes)}: {error}", *error.fields) from None


def _causes(overrides: Sequence[str], fields: Sequence[str]) -> list[str]:
    """Those of the overrides that set one of the ``fields`` or a part of it."""
    keys = {override: override.partition("=")[0].strip() for override in overrides}
    return [text for text, key in keys.items() if any(_lie_together(field, key) for field in fields)]


def _lie_together(key: str, other: str) -> bool:
    """Whether two keys are equal, or one is a section or list that contains the other."""
    shorter, longer = sorted((key, other), key=len)
    return key == other or longer.startswith((f"{shorter}.", f"{shorter}["))


def load(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a TOML config, apply ``section.key=value`` overrides; raises `EdgesimError`."""
    values = read_toml(as_path(path, "path"))
    return parse_with(lambda typed: changed(values, dict.fromkeys(typed)), overrides, str(path))


Change = tuple[str, Any] | None
"""A key and its value; None where both are read from the ``section.key=value`` that was typed."""


def changed(values: Mapping[str, Any], changes: Mapping[str, Change]) -> dict[str, Any]:
    """Copy a nested mapping and apply changes, which errors call by their texts; raises `EdgesimError`."""
    nested = copy.deepcopy(dict(values))
    for text, key_value in changes.items():
        key, value = key_value or _parsed(text)
        try:
            set_key(nested, key, value)
        except EdgesimError as error:
            raise EdgesimError(f"set {text}: {error}") from None
    return nested


def _parsed(override: str) -> tuple[str, Any]:
    """Key and value of a ``section.key=value``; the value is TOML, or else a bare string."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise EdgesimError(f"set {override}: expected a key and a value, such as rounds=20 or round.tmax_s=0.8")
    try:
        parsed = parse_toml(f"value = {text}")
    except tomllib.TOMLDecodeError:
        parsed = {"value": text}
    except ValueError as error:
        raise EdgesimError(f"set {key}: {error}") from None
    if len(parsed) > 1:
        raise EdgesimError(f"set {key}: expected one value on one line (got {text!r}); give one set for each key")
    return key, parsed["value"]


def set_key(values: dict[str, Any], key: str, value: object) -> None:
    """Set the value at a dotted key of a nested mapping, or remove the key for None; raises `EdgesimError` if a part of
    the key before the last one is a value, not a section.
    """
    *sections, last = (part.strip() for part in key.split("."))
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise EdgesimError(f"{key}: {section!r} is a value, not a section")
    values[last] = value
    if value is None:
        del values[last]
