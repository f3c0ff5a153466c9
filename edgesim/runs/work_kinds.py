"""What came of the devices' work, told from the rows that tables have: the one account that runs and analysis share.

A *task* is what one device did from receiving a model to sending its update. The server used it when it has a row in
``updates``. A row of ``activities`` is then of one kind:

- ``useful``: it ended ``done``, or was ``paused`` or ``late``, in a task that was used;
- ``dropped``, ``late`` and ``unscheduled``: it ended so, or its task did, since the result of a download or of
  computing is never used without its upload. Of several such ends the first in this order counts. A task whose rows are
  all ``done`` but hold no upload is ``dropped``: the device was taken, and left before its first bit;
- ``unused``: it was ``cancelled`` by the server, or belongs to a task that was, or to one that was uploaded but not
  merged.

Every row has one kind, so the kinds add up to all of ``activities``.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from edgesim.arrays import Booleans, Integers

USEFUL = "useful"
WASTED = ("late", "dropped", "unscheduled", "unused")
KINDS = (USEFUL, *WASTED)

USABLE = frozenset(("done", "late", "paused"))
"""Ends of rows that are useful in a task that was used."""

#: Ends that spoil a task's rows, the strongest last.
_ENDS: Mapping[str, str] = {
    "cancelled": "unused",
    "unscheduled": "unscheduled",
    "late": "late",
    "dropped": "dropped",
}


def kinds(task: Integers, is_upload: Booleans, outcome: NDArray[np.object_], used: Booleans) -> NDArray[np.object_]:
    """What each row was good for, one of `KINDS` per row, [rows].

    ``task``, ``is_upload`` and ``outcome`` are [rows], ``task`` a position in ``used`` [tasks].
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
