"""Rules of a config, stated as data: values of some keys need values of others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edgesim.base.errors import EdgesimError


class Except(tuple[object, ...]):
    """All values of a key but these."""


GIVEN = Except([None])
"""Any value of a key that may be absent."""

NOTHING = ()
"""No value of a key."""

Condition = object
"""A value of a key, a tuple of several, `Except` some, or a function that says whether a value is one."""


@dataclass(frozen=True)
class Rule:
    """Values of keys that need values of others; keys are written as ``section.key``, and None stands for absent."""

    when: Mapping[str, Condition]
    """Condition of each key; the rule applies to configs that meet all of these."""
    needs: Mapping[str, Condition]
    """Condition of each key that a config must then meet."""
    why: str = ""
    features: tuple[str, ...] = ()
    """Names of features that a config must then offer, too (`edgesim.simulation.needs`)."""


def refuse(config: object, rules: Iterable[Rule], error: Callable[..., EdgesimError] = EdgesimError) -> None:
    """Raise an error that names the keys and what they need, where a config breaks one of the rules."""
    for rule in rules:
        if all(_holds(condition, value_at(config, key)) for key, condition in rule.when.items()):
            for key, condition in rule.needs.items():
                if not _holds(condition, value := value_at(config, key)):
                    values = {key: value_at(config, key) for key in rule.when}
                    who = " with ".join(_shown(*item) for item in values.items() if item[1] is not None)
                    why = f": {rule.why}" if rule.why else ""
                    raise error(f"{who} {_needs(key, condition, value)}{why}".strip(), *rule.when, key)


def refuse_above(config: object, pairs: Iterable[tuple[str, str]], error: Callable[..., EdgesimError]) -> None:
    """Raise an error that names both keys where the first of a pair is above the second, and both are given."""
    for key, most in pairs:
        value, limit = value_at(config, key), value_at(config, most)
        if value is not None and limit is not None and value > limit:
            raise error(f"{key} ({value:g}) must not be above {most} ({limit:g})", key, most)


def value_at(config: object, key: str) -> Any:
    """The value of a dotted key of a config or nested mapping; None where there is none."""
    for part in map(str.strip, key.split(".")):
        config = config.get(part) if isinstance(config, Mapping) else getattr(config, part, None)
    return config


def _holds(condition: Condition, value: object) -> bool:
    if callable(condition):
        return bool(condition(value))
    if isinstance(condition, Except):
        return value not in condition
    return value in condition if isinstance(condition, tuple) else value == condition


def _needs(key: str, condition: Condition, value: object) -> str:
    allowed = condition if isinstance(condition, tuple) else (condition,)
    if value is None and isinstance(condition, Except):
        return f"needs {key}"
    if isinstance(condition, Except) or callable(condition) or None in allowed or not allowed:
        return f"does not go with {_shown(key, value)}"
    return f"needs {key} = {' or '.join(map(_word, allowed))}" + ("" if value is None else f", not {_word(value)}")


def _shown(key: str, value: object) -> str:
    return f"{key} = {_word(value)}" if isinstance(value, str | int | float | list) else key


def _word(value: object) -> str:
    """A value as a config file has it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else repr(value)
