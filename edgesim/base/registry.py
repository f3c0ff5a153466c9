"""Look-up of what a config names: in registries, in installed packages, and in the user's own modules."""

import difflib
import importlib
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import metadata
from typing import Any, TypeVar

from typing_extensions import override

from edgesim.base.errors import EdgesimError
from edgesim.base.plain_text import printable

Entry = TypeVar("Entry")
Kind = TypeVar("Kind", bound=type)

_files: dict[str, str] = {}
"""Config field and name of each plug-in that this process has loaded, by the file of its module."""


class Registry(dict[str, Kind]):
    """Classes of one sort by the names that a config may give: edgesim's own, those of installed packages, and others.

    A package offers classes as entry points of a group such as ``edgesim.policies``. A name with a dot is the path of a
    class in any module. Both are imported when they are asked for, and iteration leaves them out.
    """

    def __init__(self, field: str, group: str, base: Any, own: Mapping[str, Kind]) -> None:
        """``field`` of the config names the entries; all are subclasses of ``base``."""
        super().__init__(own)
        self.field = field
        self._group, self._base = group, base

    @cached_property
    def installed(self) -> dict[str, str]:
        """Dotted paths of the classes that installed packages offer, by name."""
        offered = offers().select(group=f"edgesim.{self._group}")
        return {
            entry.name: entry.value.replace(":", ".") for entry in offered if not dict.__contains__(self, entry.name)
        }

    @property
    def names(self) -> list[str]:
        """Names of edgesim's own entries and of those of installed packages, sorted."""
        return sorted((*self, *self.installed))

    def __missing__(self, name: str) -> Kind:
        """Raises KeyError for an unknown name, `EdgesimError` for a class that cannot be had or is of another sort."""
        path = self.foreign(name)
        if path is None:
            raise KeyError(name)
        plug_in = imported(path, self.field)
        if not isinstance(plug_in, type) or self._base not in plug_in.__mro__[1:]:
            what = f"the class {plug_in.__name__}" if isinstance(plug_in, type) else f"of type {type(plug_in).__name__}"
            base = f"{self._base.__module__}.{self._base.__name__}"
            raise EdgesimError(f"{self.field}: {path!r} is {what}, expected a subclass of {base}", self.field)
        if lacking := sorted(getattr(plug_in, "__abstractmethods__", ())):
            raise EdgesimError(f"{self.field}: {path!r} lacks the method {lacking[0]!r}", self.field)
        _note(plug_in, f"{self.field} {name!r}")
        return plug_in  # type: ignore[return-value]

    @override
    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (super().__contains__(name) or self.foreign(name) is not None)

    def foreign(self, name: object) -> str | None:
        """The dotted path of a class outside edgesim that a name stands for; None for other names, and for no text."""
        if not isinstance(name, str) or super().__contains__(name):
            return None
        path = self.installed.get(name, name)
        return path if "." in path and all(part.isidentifier() for part in path.split(".")) else None

    def including(self, name: str) -> dict[str, Kind]:
        """edgesim's own entries and that of a name; raises `EdgesimError`. No other plug-in is imported."""
        return {**self, name: look_up(self, name, self.field, *self.installed)}


@cache
def offers() -> Any:
    """Entry points of installed packages, of all groups: to look through them takes as long as several rounds."""
    return metadata.entry_points()


def imported(path: str, field: str) -> Any:
    """Import the object at a dotted path; raises `EdgesimError` that names ``field`` if there is none."""
    module, _, attribute = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a module may do anything when it is imported
        why = f"{type(error).__name__}: {first_line(error)}"
        if isinstance(error, ImportError):
            why = f"{error}; is its folder the current one or on PYTHONPATH?"
        elif isinstance(error, AttributeError):
            why = str(error)
        raise EdgesimError(f"{field}: cannot import {path!r}: {why}", field) from error


def first_line(error: BaseException) -> str:
    """First line of an error's message, or the error's class where it has no message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _note(plug_in: type, name: str) -> None:
    module = sys.modules.get(plug_in.__module__)
    file = None if module is None or module.__name__.startswith("edgesim.") else inspect.getsourcefile(module)
    if file is not None:
        _files[file] = name


def blamed(error: BaseException) -> str | None:
    """One line that names the plug-in an error came through, the place and the error; None if it came through none."""
    blame, trace = None, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename in _files:
            where = f"{code.co_filename}, line {trace.tb_lineno}, in {code.co_name}"
            what = printable(first_line(error), keep="")
            blame = f"{_files[code.co_filename]}: {where}: {type(error).__name__}: {what}"
        trace = trace.tb_next
    return blame


@contextmanager
def plug_ins_named() -> Iterator[None]:
    """Turn any error that comes through a plug-in into an `EdgesimError` which names the plug-in and the line."""
    try:
        yield
    except (EdgesimError, BrokenPipeError):
        raise
    except Exception as error:
        if (blame := blamed(error)) is None:
            raise
        raise EdgesimError(blame) from error


def did_you_mean(name: str, known: Collection[str], cutoff: float = 0.65, above: str = "") -> str:
    """``, did you mean 'NAME'?`` with the most similar known name, whatever its capitals; empty if none is near.

    Where ``above`` is the section of keys, it stands before the name.
    """
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(name.lower(), lower, 1, cutoff)
    return f", did you mean {f'{above}.{lower[near[0]]}'.removeprefix('.')!r}?" if near else ""


def look_up(entries: Mapping[str, Entry], name: str, field: str, *others: str) -> Entry:
    """The entry of a name given in ``field``, such as ``selection.policy`` or ``format``; raises `EdgesimError`.

    Its message also says which ``others`` the field may hold.
    """
    if not isinstance(name, str):
        raise EdgesimError(f"{field}: expected a name (got {name!r})", field)
    if name in entries:
        return entries[name]
    hint, known = did_you_mean(name, entries) or ";", ", ".join((*entries, *others))
    raise EdgesimError(f"{field}: unknown {kind_of(field)} {name!r}{hint} known: {known}", field)


def kind_of(field: str) -> str:
    """The kind that a field names: ``policy`` for ``selection.policy``, ``algorithm`` for ``algorithm.name``."""
    section, _, key = field.rpartition(".")
    return section if key == "name" else key
