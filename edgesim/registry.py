"""Things known by name: the entry of a name, or a hint for a name that is not among them."""

import difflib
from collections.abc import Collection, Mapping
from typing import TypeVar

from edgesim.errors import EdgesimError

Entry = TypeVar("Entry")


def did_you_mean(name: str, known: Collection[str], cutoff: float = 0.5) -> str:
    """``, did you mean 'NAME'?`` with the known name that is nearest; empty where none is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f", did you mean {near[0]!r}?" if near else ""


def look_up(entries: Mapping[str, Entry], name: str, field: str) -> Entry:
    """The entry of a name that the config gives in ``field``, such as ``selection.policy``; raises `EdgesimError`."""
    if name in entries:
        return entries[name]
    hint = did_you_mean(name, entries) or ";"
    raise EdgesimError(f"{field}: unknown {kind_of(field)} {name!r}{hint} known: {', '.join(entries)}", field)


def kind_of(field: str) -> str:
    """What a field names: a ``policy`` for ``selection.policy``, an ``algorithm`` for ``algorithm.name``."""
    section, _, key = field.rpartition(".")
    return section if key == "name" else key
