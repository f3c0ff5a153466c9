"""The table ``[study]`` of a config: what varies, with which seeds, which makes a study of a file."""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from edgesim.base.errors import EdgesimError
from edgesim.base.text_file import parse_toml
from edgesim.base.validation import validate
from edgesim.studies.plan import Knob, PlannedRun, grid

TABLE = "study"
_FORM = "expected KEY=VALUE,VALUE,..., such as selection.policy=random,fedteddi"

_MOST_SEEDS = 1_000_000
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class StudyTable(BaseModel):
    """What ``[study]`` of a config says."""

    model_config = ConfigDict(extra="forbid", strict=True)

    seeds: Annotated[int, Field(ge=1, le=_MOST_SEEDS)] | Annotated[list[Seed], Field(min_length=1)]
    """A number of seeds, from 0 on, or a list of seeds."""
    axes: dict[str, Any] = {}
    """Lists of values by key of the config; every combination is a setting of its own."""
    labels: dict[str, dict[str, dict[str, Any]]] = {}
    """Knobs that set several keys, lists or tables at once: the tables of a config by the knob's values."""
    target: Annotated[float, Field(gt=0, le=1)] | None = None
    """Accuracy that runs race to."""
    reference: str | None = None
    """Policy that the others are compared with."""


def study_table(values: Mapping[str, Any], where: str, seeds: int | Sequence[int] | None = None) -> StudyTable:
    """Check the table ``[study]`` of a config's values, with axes by their dotted keys; raises `EdgesimError`.

    ``seeds`` replace its own.
    """
    table = values[TABLE]
    if not isinstance(table, Mapping):
        raise EdgesimError(f"{where}: {TABLE}: expected a table (got {table!r})", TABLE)
    if seeds is not None:
        table = {**table, "seeds": seeds if isinstance(seeds, int) else [*seeds]}
    elif table.get("seeds", []) == []:
        raise EdgesimError(f"{where}: study.seeds: are missing; expected a number of seeds, such as 5", "study.seeds")
    elif "seed" in values:
        raise EdgesimError(f"{where}: seed: study.seeds gives the seeds already; remove one of them", "seed")
    checked = validate(StudyTable, table, where, TABLE)
    if isinstance(checked.seeds, list) and len({*checked.seeds}) < len(checked.seeds):
        twice = next(seed for seed in checked.seeds if checked.seeds.count(seed) > 1)
        raise EdgesimError(f"{where}: study.seeds: {twice} is given twice", "study.seeds")
    checked.axes = dict(_flat(checked.axes))
    if "seed" in checked.axes:
        raise EdgesimError(
            f"{where}: study.axes.seed: study.seeds gives the seeds already; remove it", "study.axes.seed"
        )
    return checked


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield values by their dotted keys: a key in quotation marks, or one that TOML reads as tables."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def runs_of(
    values: Mapping[str, Any],
    table: StudyTable,
    overrides: Sequence[str] = (),
    labels: Mapping[str, Knob] | None = None,
) -> list[PlannedRun]:
    """Runs of every combination of a table's labels and axes with every seed, by `grid`, with incomplete configs.

    ``values`` is the config as nested mappings, ``labels`` are further knobs, the same in all runs. Raises
    `EdgesimError` as `grid`.
    """
    base = {key: value for key, value in values.items() if key != TABLE}
    seeds = range(table.seeds) if isinstance(table.seeds, int) else table.seeds
    runs: list[PlannedRun] = []
    for names in itertools.product(*table.labels.values()):
        settings = dict(zip(table.labels, names, strict=True))
        whole = base
        for knob, name in settings.items():
            whole = _with_tables(whole, table.labels[knob][name])
        runs += grid(whole, table.axes, seeds, overrides, {**(labels or {}), **settings}, whole=False)
    return runs


def _with_tables(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a nested mapping and set what another one has, key by key."""
    whole = copy.deepcopy(dict(values))
    for key, value in others.items():
        within = whole.get(key)
        if isinstance(within, Mapping) and isinstance(value, Mapping):
            whole[key] = _with_tables(within, value)
        else:
            whole[key] = value
    return whole


def parse_axes(texts: Sequence[str]) -> dict[str, list[Knob]]:
    """Parse texts ``key=a,b,c`` into lists of values by key; raises `EdgesimError`."""
    return {key: typed_values(values, refusal) for key, values, refusal in typed_keys(texts, "--axis", _FORM)}


def typed_keys(texts: Sequence[str], what: str, form: str) -> Iterator[tuple[str, str, str]]:
    """Yield key and values of each text ``key=values``, and the refusal of values that are not of the ``form``.

    Raises `EdgesimError`, which calls a text ``what``, where a part is missing or a key is given twice.
    """
    seen: set[str] = set()
    for text in texts:
        key, _, values = (part.strip() for part in text.partition("="))
        refusal = f"{what} {text}: {form}"
        if not (key and values):
            raise EdgesimError(refusal)
        if key in seen:
            raise EdgesimError(f"{what} {text}: {key} is given twice")
        seen.add(key)
        yield key, values, refusal


def typed_values(text: str, refusal: str) -> list[Knob]:
    """Values between commas, as `_typed_value`."""
    return [_typed_value(value.strip(), refusal) for value in text.split(",")]


def _typed_value(text: str, refusal: str) -> Knob:
    """A value as in a config file, or else a bare text; raises `EdgesimError` with ``refusal`` for none."""
    if not text:
        raise EdgesimError(refusal)
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
    return value if isinstance(value, str | int | float | bool) else text


def typed_seeds(text: str) -> int | list[int]:
    """A number of seeds, such as ``5``, or the seeds themselves, such as ``3,7``; raises `EdgesimError`."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or seeds == [0] or len({*seeds}) < len(seeds):
        raise EdgesimError(f"--seeds: expected a number of seeds, such as 5, or each once, such as 3,7 (got {text!r})")
    return seeds if len(seeds) > 1 else seeds[0]
