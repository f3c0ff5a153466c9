"""What came of the devices' work: the classification of activities that runs and analysis share.

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

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from edgesim.arrays import Booleans, Integers

USEFUL = "useful"
WASTED = ("late", "dropped", "unscheduled", "unused")
KINDS = (USEFUL, *WASTED)

USABLE = frozenset(("done", "late", "paused", "kept"))
"""Outcomes of rows that are useful in a task that was used."""

#: The kind that an outcome gives to its row and to the other rows of its task; a later entry overrides earlier ones.
_ENDS: Mapping[str, str] = {
    "cancelled": "unused",
    "skipped": "unused",
    "kept": "unused",
    "unscheduled": "unscheduled",
    "late": "late",
    "dropped": "dropped",
}


def kinds(task: Integers, is_upload: Booleans, outcome: NDArray[np.object_], used: Booleans) -> NDArray[np.object_]:
    """What came of each row, one of `KINDS` per row, [rows].

    ``task``, ``is_upload`` and ``outcome`` are [rows]; ``task`` is the position of the row's task in ``used`` [tasks],
    which says whether the server used the task.
    """
    sent = np.zeros(len(used), dtype=bool)
    sent[task[is_upload]] = True
    fate = np.where(sent, "unused", "dropped").astype(object)
    for end, kind in _ENDS.items():
        fate[task[outcome == end]] = kind
    of_row = fate[task]
    for end, kind in _ENDS.items():
        of_row[outcome == end] = kind
    of_row[used[task] & np.isin(outcome, list(USABLE))] = USEFUL
    return of_row
