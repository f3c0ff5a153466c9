"""The plan of a study: every combination of knobs with every seed, as complete configs."""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from edgesim.analysis.runs import KNOB_NAMES, value_text
from edgesim.base.errors import EdgesimError, ForeignOption
from edgesim.base.needs import value_at
from edgesim.config import RunConfig
from edgesim.config_file import changed, overrides_named, parse_with, set_key
from edgesim.simulation.complete import complete

Knob = str | float | bool
Axes = Mapping[str, Sequence[Knob | None]]
"""Values by key of the config; None for runs without the key."""


@dataclass(frozen=True)
class PlannedRun:
    """One cell of the grid with one seed."""

    folder: str
    knobs: Mapping[str, Knob]
    seed: int
    config: RunConfig
    labels: Mapping[str, Knob] = field(default_factory=dict, compare=False)
    """Knobs that name settings of the grid's base."""
    overridden: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Values of the grid's base that were overridden, by ``section.key=value``; None if the base had no value."""


@dataclass(frozen=True)
class Study:
    """A named list of runs, their target accuracy, and the policy that the others are compared with."""

    name: str
    runs: Sequence[PlannedRun]
    target: float | None = None
    """Accuracy of rounds-to-target; None for a timing-only study."""
    reference: str = "random"


def grid(
    base: Mapping[str, Any],
    axes: Axes,
    seeds: Sequence[int],
    overrides: Sequence[str] | None = None,
    labels: Mapping[str, Knob] | None = None,
    *,
    whole: bool = True,
) -> list[PlannedRun]:
    """Runs of every combination of the axes (``section.key`` -> values) with every seed, seeds innermost.

    ``base`` is a nested mapping as in a config file. The values of an axis are texts, numbers or booleans, or None for
    a run without the key. A run's folder is named by its knobs and seed, such as ``fedteddi-tmax0.8-known-s3``;
    without axes by the seed alone. ``overrides`` are further ``section.key=value``, for keys that do not vary.
    ``labels`` are further knobs, the same in all runs, that name settings of ``base`` which no axis can hold (several
    keys at once, or a list). Configs are complete, or else only checked, so that no code that they name is imported.
    Raises `EdgesimError` if a combination is not a valid config, or an axis has no values.
    """
    overrides = overrides or ()
    for override in overrides:
        key = override.partition("=")[0].strip()
        if key in axes or key == "seed":
            raise EdgesimError(f"set {override}: the study itself varies {key}", key)
    labels = labels or {}
    knob_names = names_of_knobs(axes, labels)
    overridden = {override: value_at(base, override.partition("=")[0]) for override in overrides}
    if not isinstance(seeds, Iterable) or len(seeds) == 0:
        raise EdgesimError(f"seeds: expected a list of at least one seed, such as range(3) (got {seeds!r})")
    runs: list[PlannedRun] = []
    for values in itertools.product(*(_values(key, values) for key, values in axes.items())):
        varied = zip(knob_names, values, strict=True)
        knobs = {**labels, **{name: value for name, value in varied if value is not None}}
        name = "".join(f"{_label(knob, value)}-" for knob, value in knobs.items())
        for seed in map(own, seeds):
            cell = dict(zip(axes, values, strict=True)) | {"seed": seed}
            folder = f"{name}s{seed}"
            config = parse_with(partial(_nested, base, cell), overrides, f"run {folder}")
            runs.append(PlannedRun(folder, knobs, seed, config, labels, overridden))
    return completed(runs) if whole else runs


def completed(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """Runs of `grid` with complete configs, for which the code that they name is imported.

    Raises `EdgesimError` if a config cannot be completed.
    """
    whole = []
    for run in runs:
        with named(run.folder), overrides_named([*run.overridden]):
            whole.append(replace(run, config=complete(run.config)))
    return whole


def check_labels(runs: Sequence[PlannedRun]) -> None:
    """Raise `EdgesimError` if an override removes the difference between runs with different labels.

    It does if each value of a label has its own value of the overridden key, or if two labelled runs become the same.
    """
    for override in dict.fromkeys(override for run in runs for override in run.overridden):
        key = override.partition("=")[0].strip()
        for label in dict.fromkeys(name for run in runs for name in run.labels):
            by_label: dict[Knob, set[str]] = {}
            for run in runs:
                if label in run.labels and (value := run.overridden.get(override)) is not None:
                    by_label.setdefault(run.labels[label], set()).add(json.dumps(value, sort_keys=True))
            if all(len(values) == 1 for values in by_label.values()) and len(set().union(*by_label.values())) > 1:
                runs_text = f"{label} {', '.join(map(str, by_label))}"
                raise EdgesimError(f"set {override}: {key} distinguishes {runs_text}; leave one of them out", key)
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        if not (run.overridden and run.labels):
            continue
        same = seen.setdefault(run.config.model_dump_json(by_alias=True), run)
        if same.overridden == run.overridden:
            continue  # alike in what was set, too: they would be the same without it
        for label, value in run.labels.items():
            if (other := same.labels.get(label)) != value:
                keys = [override.partition("=")[0].strip() for override in run.overridden]
                raise EdgesimError(
                    f"set of {', '.join(keys)}: {label} {other} and {value} would be the same run; leave one of them "
                    "out",
                    *keys,
                )


@contextmanager
def named(folder: str) -> Iterator[None]:
    """Context in which errors name the run that they are about."""
    try:
        yield
    except EdgesimError as error:
        remedy = ", or plan its runs as a grid of their own" if isinstance(error, ForeignOption) else ""
        raise EdgesimError(f"run {folder}: {error}{remedy}", *error.fields) from None


def _values(key: str, values: Sequence[Knob | None]) -> list[Knob | None]:
    """The values of an axis; raises `EdgesimError` for none, and for values that a table cannot show."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise EdgesimError(f"axis {key}: expected a list of values (got {values!r})", key)
    plain = [own(value) for value in values]
    if not plain:
        raise EdgesimError(f"axis {key}: expected at least one value", key)
    for value in plain:
        if not isinstance(value, str | int | float | None):
            raise EdgesimError(
                f"axis {key}: expected texts, numbers, booleans or None (got {value!r}); give it in the base of a grid "
                "of its own, named by labels",
                key,
            )
    texts = [value_text(value) for value in plain]
    if twice := next((text for text in texts if texts.count(text) > 1), ""):
        raise EdgesimError(f"axis {key}: {twice} is given twice", key)
    return plain


def own(value: Any) -> Any:
    """A NumPy number as a Python number, which a plan and a config can hold; other values as they are."""
    return value.item() if isinstance(value, np.generic) else value


def _nested(base: Mapping[str, Any], cell: Mapping[str, Knob | None], overrides: Sequence[str]) -> dict[str, Any]:
    """The config of one cell as nested mappings, as in a file."""
    nested = changed(json.loads(json.dumps(base)), dict.fromkeys(overrides))
    for key, value in cell.items():
        set_key(nested, key, value)
    return nested


def names_of_knobs(keys: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Names of knobs: from `KNOB_NAMES` or the last part of the key; the whole key if names would be equal."""
    names = {key: KNOB_NAMES.get(key, key.rpartition(".")[2]) for key in keys}
    times = Counter([*names.values(), *taken])
    return [name if times[name] == 1 else key for key, name in names.items()]


def _label(knob: str, value: Knob) -> str:
    """Part of a folder's name for a knob: a text alone; a number after the knob's name without its unit; true or false
    after the knob's whole name."""
    if isinstance(value, str):
        return value.replace("/", "_")
    if isinstance(value, bool):
        return f"{knob.replace('_', '')}-{str(value).lower()}"
    return f"{knob.rsplit('_', 1)[0].replace('_', '')}{value:.12g}"
