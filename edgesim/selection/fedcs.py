"""FedCS: Nishio and Yonetani, "Client selection for federated learning with heterogeneous resources", ICC 2019.

As many devices as finish by the deadline, greedily by how much each lengthens the round.
"""

from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.selection import view
from edgesim.selection.stateless import Stateless, walk
from edgesim.selection.ties import descending
from edgesim.selection.view import Choice, RoundView


class FedCsOptions(view.Options):
    """Knobs of FedCS."""

    uploads: Literal["sequential", "parallel"] = "sequential"
    """Whether uploads follow one another on the whole band, as in the paper, or share it: then the order is by the
    finish at an equal share, those who would be late even with the whole band are left out, and the admission decides
    who fits. ``parallel`` is for own links (``radio.sharing = "own"``), where no upload waits for another."""


class FedCs(Stateless):
    """Devices by least increment of the round, those that would end it late left out."""

    Options: ClassVar[type[view.Options]] = FedCsOptions
    options: FedCsOptions

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield devices in the order of Algorithm 3, or by rising finish."""
        rows, estimates = np.arange(len(view.ids), dtype=np.int64), view.estimates
        if self.options.uploads == "parallel":
            rows = rows[estimates.ready_s(rows) + estimates.upload_s(rows, 1) < estimates.due_s(rows)]
            finish_s = estimates.ready_s(rows) + estimates.upload_s(rows, estimates.places())
            return walk(view.ids[rows[descending(-finish_s)]])
        return one_after_another(view.ids, estimates.ready_s(rows), estimates.upload_s(rows, 1), estimates.due_s(rows))


def one_after_another(ids: Integers, ready_s: Floats, upload_s: Floats, due_s: Floats) -> Choice:
    """Offer devices by least increment T = upload + max(0, ready - Theta), all [n], and advance Theta by each taken.

    Theta is when the uploads of those taken end. A device is offered only if Theta + T < ``due_s``. No increment
    changes as long as Theta stays, so devices are sorted anew only after one was taken.
    """
    end_s, left = 0.0, np.arange(len(ids), dtype=np.int64)
    taken = True
    while taken:
        increment_s = upload_s[left] + np.maximum(0.0, ready_s[left] - end_s)
        order = descending(-increment_s)
        order = order[end_s + increment_s[order] < due_s[left[order]]]
        taken = False
        for offered, row in enumerate(order.tolist(), start=1):
            taken = bool((yield int(ids[left[row]])))
            if taken:
                end_s += float(increment_s[row])
                left = np.sort(left[order[offered:]])
                break
