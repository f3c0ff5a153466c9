"""Classification of the devices' work as useful or wasted, which runs and analysis share.

A *task* is what one device did from receiving a model to sending its update. The server used it when it has a row in
``updates``. A row of ``activities`` is then of one kind:

- ``useful``: it ended ``done`` or ``kept``, or was ``paused`` or ``late``, in a task that was used;
- ``dropped``, ``late`` and ``unscheduled``: the row has this outcome, or another row of its task has, since the result
  of a download or of computing is never used without its upload. If a task has several of these outcomes, the first in
  this order counts. A task whose rows are all ``done`` but without an upload is ``dropped``: the device was taken and
  dropped out before its first bit;
- ``unused``: the row was ``cancelled`` by the server, or belongs to a task that was, or to a task that was uploaded but
  not merged; or to one of a round in which nothing was sent (``skipped``), or whose weights the device ``kept`` but the
  server never got: it got them where the device's update is part of the next model that was made.

Every row has one kind, so the kinds add up to all of ``activities``.
"""

import numpy as np

from edgesim.base.arrays import Booleans, Integers

USEFUL = "useful"
WASTED = ("late", "dropped", "unscheduled", "unused")
KINDS = (USEFUL, *WASTED)

USABLE = frozenset(("done", "late", "paused", "kept"))
"""Outcomes of rows that are useful in a task that was used."""

_ENDS = {
    "done": "",
    "paused": "",
    "cancelled": "unused",
    "skipped": "unused",
    "kept": "unused",
    "unscheduled": "unscheduled",
    "late": "late",
    "dropped": "dropped",
}
"""The kind that an outcome gives to its row and to the other rows of its task; a later entry overrides earlier ones."""

NUMBER = {outcome: number for number, outcome in enumerate(_ENDS)}
"""Number of each outcome, as `kinds` takes it."""
_KIND_OF = np.array([KINDS.index(kind) if kind else -1 for kind in _ENDS.values()])
_IS_USABLE = np.array([outcome in USABLE for outcome in _ENDS])
_DROPPED, _UNUSED = KINDS.index("dropped"), KINDS.index("unused")


def kinds(task: Integers, is_upload: Booleans, outcome: Integers, used: Booleans) -> Integers:
    """Classify each row of ``activities``: its position in `KINDS`, [rows].

    ``task``, ``is_upload`` and ``outcome`` (a `NUMBER`) are [rows]; ``task`` is the position of the row's task in
    ``used`` [tasks], which says whether the server used the task.
    """
    fate = np.full(len(used), _DROPPED)
    fate[task[is_upload]] = _UNUSED
    last = np.zeros(len(used), dtype=np.int64)
    np.maximum.at(last, task, outcome)
    ended = _KIND_OF[last]
    fate = np.where(ended >= 0, ended, fate)
    own = _KIND_OF[outcome]
    of_row = np.where(own >= 0, own, fate[task])
    of_row[used[task] & _IS_USABLE[outcome]] = KINDS.index(USEFUL)
    return of_row
