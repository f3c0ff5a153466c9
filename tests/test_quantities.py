"""Every number that a config or a content file holds has a least and a largest value."""

import importlib
import pkgutil
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import annotated_types
import pytest
from pydantic import BaseModel
from refusals import in_one_line

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.base.validation import validate
from edgesim.config import RunConfig

HUGE = {int: 2**63, float: 1.7e308}


def models() -> list[type[BaseModel]]:
    """All pydantic models of the package but those that are put together of others' fields while it runs."""
    for module in pkgutil.walk_packages(edgesim.__path__, "edgesim."):
        if module.name not in ("edgesim.commands.entry", "edgesim.__main__"):
            importlib.import_module(module.name)
    found, left = [], [BaseModel]
    while left:
        left += (below := left.pop().__subclasses__())
        found += [model for model in below if model.__module__.startswith("edgesim.")]
    found = [model for model in found if model.__name__ != "BothOptions"]
    return sorted(set(found), key=str)


def numbers(kind: Any, bounds: tuple[Any, ...] = ()) -> Iterator[tuple[type, tuple[Any, ...]]]:
    """The numeric types within an annotation, each with what bounds it."""
    if typing.get_origin(kind) is Annotated:
        inner, *more = typing.get_args(kind)
        bounds += tuple(bound for one in more for bound in getattr(one, "metadata", [one]))
        yield from numbers(inner, bounds)
    elif kind in (int, float):
        yield kind, bounds
    elif typing.get_origin(kind) is not Literal:
        for part in typing.get_args(kind):
            yield from numbers(part, bounds)


@pytest.mark.parametrize("model", models(), ids=lambda model: f"{model.__module__}.{model.__name__}")
def test_every_number_has_a_least_and_a_largest_value(model: type[BaseModel]) -> None:
    """Pydantic takes the last bound of a kind, which is that of the quantity: no other may be tighter."""
    for name, field in model.model_fields.items():
        for _, bounds in numbers(field.annotation, tuple(field.metadata)):
            assert any(isinstance(bound, annotated_types.Ge | annotated_types.Gt) for bound in bounds), name
            most = [getattr(bound, "le", getattr(bound, "lt", None)) for bound in bounds]
            largest = [bound for bound in most if bound is not None]
            assert largest, name
            assert min(largest) <= 2**63, name
        own = [bound.le for bound in field.metadata if isinstance(bound, annotated_types.Le)]
        assert not own or own[-1] == min(own), name


SECTIONS = {name: field.annotation for name, field in RunConfig.model_fields.items()}
KNOBS = [
    (section, name, kind)
    for section, model in SECTIONS.items()
    if isinstance(model, type) and issubclass(model, BaseModel)
    for name, field in model.model_fields.items()
    for kind, _ in numbers(field.annotation)
]


def test_a_huge_number_is_refused_in_one_line_with_the_bound() -> None:
    assert len(KNOBS) > 40
    for section, name, kind in KNOBS:
        for huge in (HUGE[kind], -HUGE[kind]):
            with in_one_line("less than|greater than") as refusal:
                validate(RunConfig, {section: {name: huge}}, "run.toml")
            assert str(refusal.value).startswith(f"run.toml: {section}.{name}: input should be ")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rounds": [1, 0]}, "rounds[1]: input should be greater than or equal to 1 (got 0)"),
        ({"rounds": "x"}, "rounds: input should be a valid integer or a valid list (got 'x')"),
        ({"round": {"payload_bits": 0.5}}, "round.payload_bits: input should be greater than or equal to 1 (got 0.5)"),
        ({"round": {"payload_bits": "x"}}, "round.payload_bits: input should be a valid number or 'model' (got 'x')"),
        (
            {"devices": {"count": 50_000_000}},
            "devices.count: input should be less than or equal to 10000000 (got 50000000)",
        ),
        (
            {"devices": {"battery_j": 1.0, "battery_start": 2.0}},
            "devices.battery_start: input should be less than or equal to 1 (got 2.0)",
        ),
    ],
)
def test_where_a_knob_has_several_forms_the_error_is_that_of_the_form_given(values: dict[str, Any], said: str) -> None:
    with pytest.raises(EdgesimError) as refusal:
        validate(RunConfig, values, "run.toml")
    assert str(refusal.value) == f"run.toml: {said}"
