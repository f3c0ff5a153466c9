"""Checks a policy's offers against the devices that it may choose from."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError


class Offers:
    """The offers of one policy in one round: integer ids of devices that may be chosen, each at most once."""

    def __init__(self, policy: str, round: int, ids: Integers, among: str) -> None:
        """Begin with no offer; ``ids`` are ascending, and called ``among`` in errors."""
        self._policy, self._round, self._ids, self._among = policy, round, ids, among
        self._dense = len(ids) > 0 and ids[-1] == len(ids) - 1
        """Whether the ids are 0, 1, 2, ..., so that each id is its own position."""
        self._offered = np.zeros(len(ids), dtype=bool)
        self._count = 0

    def row(self, offer: object) -> int:
        """Position among the ids of one id that is offered; raises `EdgesimError`."""
        if not isinstance(offer, int | np.integer) or isinstance(offer, bool):
            self._refuse_kind(offer)
        device, there = int(offer), len(self._ids)
        row = device if self._dense else int(np.searchsorted(self._ids, device))
        if not (0 <= row < there and self._ids[row] == device):
            self._refuse_absent(device)
        if self._offered[row]:
            self._refuse(f"device {device} twice")
        self._offered[row] = True
        self._count += 1
        return row

    def rows(self, offer: NDArray[Any]) -> Integers:
        """Positions among the ids of an array of ids that are offered in order, [k]; raises `EdgesimError`."""
        if not isinstance(offer, np.ndarray) or offer.dtype.kind not in "iu" or offer.ndim != 1:
            self._refuse_kind(offer)
        if len(offer) == 0:
            return np.empty(0, dtype=np.int64)
        there = len(self._ids)
        if self._dense and np.count_nonzero((offer >= 0) & (offer < there)) == len(offer):
            rows = offer
        else:
            rows = np.searchsorted(self._ids, offer)
            absent = rows == there
            if there:
                absent |= self._ids[np.minimum(rows, there - 1)] != offer
            if absent.any():
                self._refuse_absent(int(offer[np.argmax(absent)]))
        before = self._offered[rows]
        self._offered[rows] = True
        self._count += len(rows)
        if np.count_nonzero(self._offered) != self._count:
            _, first = np.unique(rows, return_index=True)
            before[np.setdiff1d(np.arange(len(rows)), first)] = True
            self._refuse(f"device {offer[np.argmax(before)]} twice")
        return rows

    def _refuse_absent(self, device: int) -> NoReturn:
        self._refuse(f"device {device}, which is not among {self._among} ({len(self._ids)})")

    def _refuse_kind(self, offer: object) -> NoReturn:
        what = repr(offer)
        if isinstance(offer, np.ndarray):
            what = f"an array of {offer.dtype} and shape {offer.shape}"
            if offer.dtype == bool:
                what += ", which may be a mask: offer the ids where it is true"
        self._refuse(f"{what[:100]}; expected integer device ids, one or an array [n]")

    def _refuse(self, what: str) -> NoReturn:
        raise EdgesimError(
            f"selection.policy {self._policy!r}, round {self._round}: offered {what}", "selection.policy"
        )
