"""Knobs of a tuning: ranges of numbers and lists of values, checked against the config before anything runs."""

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgesim.analysis.runs import value_text
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse, set_key
from edgesim.simulation.complete import complete
from edgesim.studies.plan import Knob as Value
from edgesim.studies.study_table import typed_keys, typed_values

Spec = tuple[float, float] | Sequence[Value]
"""A range as a pair of numbers, or the list of values."""

_DECADE = 10.0
_DIGITS = 4
"""Significant digits of a number from a range: finer ones mean nothing, and folders are named by them."""
_FORM = "expected KEY=LOW:HIGH or KEY=VALUE,VALUE,..., such as round.tmax_s=0.1:2.0"
_MOST_TRIED = 500
"""Combinations with other knobs that are tried before a value counts as one that the config refuses."""


@dataclass(frozen=True)
class Knob:
    """A key of the config and its values: those of ``choices``, or numbers from ``low`` to ``high``."""

    key: str
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    """Whether only whole numbers of the range are valid."""

    @property
    def spans_a_decade(self) -> bool:
        """Whether the values are positive numbers, the greatest ten times the least or more."""
        if not self.is_ordered:
            return False
        low, high = float(self.ends[0]), float(self.ends[-1])
        return low > 0 and high / low >= _DECADE

    @property
    def is_log(self) -> bool:
        """Whether a range is searched on a logarithmic scale."""
        return not self.choices and self.spans_a_decade

    @property
    def is_ordered(self) -> bool:
        """Whether the values are numbers, so that near ones may be alike."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.choices)

    @property
    def ends(self) -> tuple[Value, ...]:
        """All values of a list, and both ends of a range."""
        return self.choices or (self.value(self.low), self.value(self.high))

    @property
    def cells(self) -> tuple[Value, ...] | None:
        """All values; None for a range of real numbers."""
        return tuple(range(int(self.low), int(self.high) + 1)) if self.whole else self.choices or None

    def distribution(self) -> Any:
        """Optuna's distribution: places in a list of numbers, values of another list, or numbers of a range.

        From the places Optuna knows which values of a list are neighbours.
        """
        from optuna import distributions

        if self.choices and self.is_ordered:
            return distributions.IntDistribution(0, len(self.choices) - 1)
        if self.choices:
            return distributions.CategoricalDistribution(self.choices)
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), log=self.is_log)
        return distributions.FloatDistribution(self.low, self.high, log=self.is_log)

    def value(self, parameter: Any) -> Value:
        """The value of the config for a parameter of Optuna's."""
        if self.choices:
            chosen: Value = self.choices[parameter] if self.is_ordered else parameter
            return chosen
        if self.whole:
            return int(parameter)
        return min(max(float(f"{parameter:.{_DIGITS}g}"), self.low), self.high)

    def parameter(self, value: Any) -> Any | None:
        """Optuna's parameter for a value of the config; None if it is none of the knob's."""
        if self.choices:
            if value not in self.choices:
                return None
            return self.choices.index(value) if self.is_ordered else value
        return value if isinstance(value, int | float) and self.low <= value <= self.high else None

    def described(self) -> str:
        """Line of text about the values and how they are searched."""
        if self.choices:
            return f"{self.key}: {', '.join(value_text(value) for value in self.choices)}"
        scale = "logarithmic, since it spans a decade or more" if self.is_log else "linear"
        return f"{self.key}: {'whole numbers ' * self.whole}{self.low:g} to {self.high:g}, {scale}"


def parse_knobs(texts: Sequence[str]) -> dict[str, Spec]:
    """Parse texts ``key=low:high`` and ``key=a,b,c`` into ranges and lists of values by key; raises `EdgesimError`."""
    specs: dict[str, Spec] = {}
    for key, values, refusal in typed_keys(texts, "knob", _FORM):
        ends = values.split(":")
        if len(ends) == 2 and "," not in values:
            try:
                specs[key] = float(ends[0]), float(ends[1])
            except ValueError:
                raise EdgesimError(refusal) from None
        else:
            specs[key] = typed_values(values, refusal)
    return specs


def check_knobs(base: Mapping[str, Any], specs: Mapping[str, Spec]) -> list[Knob]:
    """Check knobs against a nested config; raises `EdgesimError` for unknown keys, and values that it refuses.

    A value counts as refused if the config refuses it with every combination of the other knobs' ends.
    """
    if not specs:
        raise EdgesimError(f"no knob to tune: {_FORM}")
    knobs = [_knob(key, spec) for key, spec in specs.items()]
    for place, knob in enumerate(knobs):
        others = knobs[:place] + knobs[place + 1 :]
        refusal = _refused_end(base, knob, others)
        if refusal is not None and not knob.choices and knob.low.is_integer() and knob.high.is_integer():
            # Keys of whole numbers refuse 5.0, too.
            knobs[place] = Knob(knob.key, low=knob.low, high=knob.high, whole=True)
            refusal = _refused_end(base, knobs[place], others)
        if refusal is not None:
            raise refusal
    return knobs


def _knob(key: str, spec: Spec) -> Knob:
    if key == "seed":
        raise EdgesimError("knob seed: the runs of a trial differ in it, so it cannot be tuned")
    if isinstance(spec, tuple):
        if len(spec) != 2 or not all(isinstance(end, int | float) and math.isfinite(end) for end in spec):
            raise EdgesimError(f"knob {key}: expected a range of two finite numbers (got {spec!r})")
        low, high = float(spec[0]), float(spec[1])
        if low >= high:
            raise EdgesimError(f"knob {key}={low:g}:{high:g}: expected a range whose first number is the smaller one")
        return Knob(key, low=low, high=high)
    values = list(spec) if isinstance(spec, Iterable) and not isinstance(spec, str) else []
    if len(values) < 2:
        raise EdgesimError(f"knob {key}: has no range; {_FORM}")
    if twice := [value for value in values if values.count(value) > 1]:
        raise EdgesimError(f"knob {key}: {twice[0]} is given twice")
    knob = Knob(key, tuple(values))
    return Knob(key, tuple(sorted(values, key=float))) if knob.is_ordered else knob


def _refused_end(base: Mapping[str, Any], knob: Knob, others: Sequence[Knob]) -> EdgesimError | None:
    refusals = (_refusal(base, knob, end, others) for end in knob.ends)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _refusal(base: Mapping[str, Any], knob: Knob, value: Value, others: Sequence[Knob]) -> EdgesimError | None:
    """Error of a config about a value of a knob; None if the config takes it with some ends of the other knobs."""
    refusal = None
    for cell in itertools.islice(_cells(others), _MOST_TRIED):
        nested = copy.deepcopy(dict(base))
        try:
            for key, setting in (cell | {knob.key: value}).items():
                set_key(nested, key, setting)
            complete(parse(nested, f"knob {knob.key}"))
        except EdgesimError as error:
            prefix = "" if str(error).startswith("knob") else f"knob {knob.key}: "
            refusal = refusal or EdgesimError(f"{prefix}{error}", *error.fields)
        else:
            return None
    return refusal


def _cells(knobs: Sequence[Knob]) -> Iterator[dict[str, Value]]:
    """Yield combinations of the knobs' ends; the first leaves the config's own values."""
    yield {}
    for values in itertools.product(*(knob.ends for knob in knobs)):
        yield {knob.key: value for knob, value in zip(knobs, values, strict=True)}
