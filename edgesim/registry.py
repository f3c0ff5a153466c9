"""Look-up in registries by name, with a hint for an unknown name."""

import difflib
from collections.abc import Collection, Mapping
from typing import TypeVar

from edgesim.errors import EdgesimError

Entry = TypeVar("Entry")


def did_you_mean(name: str, known: Collection[str], cutoff: float = 0.5) -> str:
    """``, did you mean 'NAME'?`` with the most similar known name, whatever its capitals; empty if none is near."""
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), lower, 1, cutoff)
    return f", did you mean {lower[near[0]]!r}?" if near else ""


def look_up(entries: Mapping[str, Entry], name: str, field: str, *others: str) -> Entry:
    """The entry of a name given in ``field``, such as ``selection.policy`` or ``--format``; raises `EdgesimError`.

    Its message also says which ``others`` the field may hold.
    """
    if name in entries:
        return entries[name]
    hint, known = did_you_mean(name, entries, 0.6) or ";", ", ".join((*entries, *others))
    raise EdgesimError(f"{field}: unknown {kind_of(field)} {name!r}{hint} known: {known}", field)


def kind_of(field: str) -> str:
    """The kind that a field names: ``policy`` for ``selection.policy``, ``algorithm`` for ``algorithm.name``."""
    section, _, key = field.removeprefix("--").rpartition(".")
    return section if key == "name" else key
