"""Lazy parts of views and reports: asked for in time, and noted so that a replay asks for the same."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.selection.column import Column
from edgesim.selection.view import RoundReport, RoundView


@dataclass(frozen=True)
class Look:
    """A question to a lazy part, such as ``knowledge.losses(ids)``."""

    part: str
    method: str
    arguments: tuple[Any, ...]
    by_name: dict[str, Any]

    def repeat(self, of: RoundView | RoundReport) -> None:
        """Ask the same of another view or report."""
        getattr(getattr(of, self.part), self.method)(*self.arguments, **self.by_name)


class Access:
    """Access to the lazy parts of one view or report; once it is closed, it holds nothing of the run any more."""

    def __init__(self, of: RoundView | RoundReport, name: str, over: str, note: Callable[[Look], None]) -> None:
        """``name`` is used in errors, which end with ``over``; ``note`` is called with each question."""
        self._of: RoundView | RoundReport | None = of
        self._name, self._over, self._note = name, over, note

    def close(self) -> None:
        """End the access."""
        self._of = None

    def ask(self, part: str, method: str, *arguments: Any, **by_name: Any) -> Any:
        """Ask a lazy part, and note the question; raises `EdgesimError` if the access is closed."""
        asked = getattr(self.attribute(part, f"{part}.{method}"), method)
        self._note(Look(part, method, *copy.deepcopy((arguments, by_name))))
        return asked(*arguments, **by_name)

    def attribute(self, name: str, called: str) -> Any:
        """Attribute of the view or report, ``called`` so in errors; raises `EdgesimError` if the access is closed."""
        if self._of is None:
            raise EdgesimError(f"{self._name}.{called}: {self._over}")
        return getattr(self._of, name)


class LazyPart:
    """A lazy part of a view or a report: its methods are asked through the access."""

    def __init__(self, access: Access, part: str) -> None:
        self._access, self._part = access, part

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *arguments, **by_name: self._access.ask(self._part, method, *arguments, **by_name)


def guarded_view(view: RoundView, note: Callable[[Look], None]) -> tuple[RoundView, Access]:
    """A view whose lazy parts and columns can be asked for until the access is closed, and the access.

    What has been asked of a column until then stays known.
    """
    access = Access(view, "view", "the decision is made; ask for it before decide", note)

    def column(name: str) -> Column:
        return Column(len(view.ids), lambda rows: access.attribute(name, name)[rows])

    lazy: dict[str, Any] = {name: column(name) for name in ("gain", "delay_s", "need_hz")}
    lazy |= {name: LazyPart(access, name) for name in ("knowledge", "estimates")}
    return replace(view, **lazy), access


def guarded_report(report: RoundReport, note: Callable[[Look], None]) -> tuple[RoundReport, Access]:
    """A report whose lazy parts can be asked for until the access is closed, and the access."""
    access = Access(report, "report", "the round is over; ask for it in on_report", note)
    gradients: Any = LazyPart(access, "gradients")
    late: dict[str, Any] = {
        "who_checked_in": lambda: access.attribute("checked_in", "checked_in"),
        "what_was_spent": lambda: access.attribute("spent", "spent"),
    }
    return replace(report, gradients=gradients, **late), access
