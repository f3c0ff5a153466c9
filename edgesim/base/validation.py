"""Validation of users' input with pydantic models: the first error becomes one line."""

import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from edgesim.base.errors import EdgesimError, ForeignOption
from edgesim.base.registry import Registry, did_you_mean, kind_of, look_up

Model = TypeVar("Model", bound=BaseModel)

_UNION_BRANCHES = {"int", "float", "str", "constrained-int", "constrained-float"}


def validate(model: type[Model], values: Mapping[str, Any], where: str, section: str = "") -> Model:
    """Validate against a model; the first error becomes one line, with the nearest name for an unknown key.

    ``where`` comes before it; ``section`` is that of the config which has the values, if any.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        _, words, fields = first_error(model, error, section=section)
        raise EdgesimError(f"{where}: {words}", *fields) from None


def options_of(
    kinds: Mapping[str, type[Model]], name: str, options: Mapping[str, Any], field: str, section: str
) -> Model:
    """The checked options, given in ``section``, of the entry that a config names in ``field`` (``selection.policy``).

    ``kinds`` are the option models of all entries. Raises `EdgesimError` for an unknown name, a bad value, and an
    option of another entry, which it names.
    """
    model, kind = look_up(kinds, name, field), kind_of(field)
    for key in options:
        owners = [other for other, its in kinds.items() if key in its.model_fields]
        if owners and name not in owners:
            raise ForeignOption(
                f"{section}.{key}: is an option of {kind} {' or '.join(map(repr, owners))}, not of {name!r}; "
                f"remove it or change the {kind}",
                f"{section}.{key}",
            )
    if options and not model.model_fields:
        fields = [f"{section}.{key}" for key in options]
        listed = ", ".join(map(repr, options))
        meant = did_you_mean(next(iter(options)), [field.rpartition(".")[2]])
        raise EdgesimError(f"{fields[0]}: {kind} {name!r} takes no options, remove {listed}{meant}", *fields)
    return validate(model, options, f"{kind} {name!r}", section)


def entry_of(registry: Registry[type[Model]], name: str, options: Mapping[str, Any], section: str = "") -> Model:
    """The entry of a registry that a config names, with its options; they lie in the section of the registry's field
    where no other ``section`` is given. Raises as `options_of`.
    """
    field = registry.field
    return options_of(registry.including(name), name, options, field, section or field.partition(".")[0])


def first_error(model: type[BaseModel], error: ValidationError, section: str = "") -> tuple[str, str, tuple[str, ...]]:
    """The first error: its key (empty if several keys contradict each other), a one-line message, and its fields.

    Keys of the model lie in ``section``.
    """
    # Unknown keys first: they often cause the other errors (a misspelt required key is missing too).
    details = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
    detail = _of_the_union(details)
    parts = (
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"] if not _is_union_branch(part)
    )
    path = (section + "".join(parts)).removeprefix(".")
    if detail["type"] == "extra_forbidden":
        known, above = _keys_at(model, detail["loc"][:-1]), path.rpartition(".")[0]
        name = str(detail["loc"][-1])
        if elsewhere := [*keys_called(name, model)]:
            hint = f", did you mean {' or '.join(map(repr, elsewhere))}?"
        else:
            hint = did_you_mean(name, known, above=above) or f"; known: {', '.join(known)}"
        return path, f"unknown key {path!r}{hint}", (path,)
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "model_type":
        message = "expected a table of keys"
    message = message[0].lower() + message[1:]
    got = "" if detail["type"] in ("missing", "value_error") else f" (got {detail['input']!r})"
    # A contradiction names keys of the section that it lies in.
    fields = getattr(detail.get("ctx", {}).get("error"), "fields", ("",))
    fields = tuple(name for field in fields if (name := f"{path}.{field}".strip(".")))
    return path, f"{path}: {message}{got}".removeprefix(": "), fields


def _of_the_union(details: list[ErrorDetails]) -> ErrorDetails:
    """The first error, or, where a value fits no branch of a union, one error for all its branches."""
    first = details[0]
    depth = next((at for at, part in enumerate(first["loc"]) if _is_union_branch(part)), None)
    if depth is None:
        return first
    branches = [detail for detail in details if detail["loc"][:depth] == first["loc"][:depth]]
    for detail in branches:
        # The value has the type of this branch, and fails for another reason, or some item of it fails.
        is_item = len(detail["loc"]) > depth + 1
        if is_item or not (detail["type"].endswith("_type") or detail["type"] == "literal_error"):
            return detail
    expected = [detail["msg"].removeprefix("Input should be ") for detail in branches]
    return first | {"msg": f"input should be {' or '.join(expected)}"}


def _is_union_branch(part: object) -> bool:
    """Whether a part of an error's location is a branch of a union, which pydantic appends and no user wrote."""
    return isinstance(part, str) and (part in _UNION_BRANCHES or "[" in part)


def keys_called(name: str, model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Full keys, as ``section.key``, of a model and of those within it, whose last part is ``name``."""
    for key, field in model.model_fields.items():
        if key == name:
            yield above + key
        for kind in models_in(field.annotation):
            yield from keys_called(name, kind, f"{above}{key}.")


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models among the types of a field."""
    kinds = typing.get_args(annotation) or (annotation,)
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Field names of the (sub-)model that a path of keys leads to."""
    for part in path:
        if isinstance(part, int):
            continue
        model = models_in(model.model_fields[part].annotation)[0]
    return sorted(model.model_fields)
