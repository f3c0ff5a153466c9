"""Look-up in registries by name, with a hint for an unknown name."""

import difflib
from collections.abc import Collection, Mapping
from typing import TypeVar

from edgesim.errors import EdgesimError

Entry = TypeVar("Entry")


def did_you_mean(name: str, known: Collection[str], cutoff: float = 0.5) -> str:
    """``, did you mean 'NAME'?`` with the most similar known name; empty if none is similar enough."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f", did you mean {near[0]!r}?" if near else ""


def look_up(entries: Mapping[str, Entry], name: str, field: str) -> Entry:
    """The entry of a name that the config gives in ``field``, such as ``selection.policy``; raises `EdgesimError`."""
    if name in entries:
        return entries[name]
    hint = did_you_mean(name, entries) or ";"
    raise EdgesimError(f"{field}: unknown {kind_of(field)} {name!r}{hint} known: {', '.join(entries)}", field)


def kind_of(field: str) -> str:
    """The kind that a field names: ``policy`` for ``selection.policy``, ``algorithm`` for ``algorithm.name``."""
    section, _, key = field.rpartition(".")
    return section if key == "name" else key
