"""Best Norm: policy BN2 of Amiri et al., "Convergence of update aware device scheduling", IEEE TWC 2021.

The original picks a fixed number of devices; here the band is the limit, as in FedTeddi's comparison.
"""

from typing import ClassVar

from typing_extensions import override

from edgesim.selection.stateless import Stateless, walk
from edgesim.selection.ties import descending
from edgesim.selection.view import Choice, RoundView


class BestNorm(Stateless):
    """Devices by falling norm of this round's update as the server would receive it, for which all candidates train."""

    looks_at: ClassVar[frozenset[str]] = frozenset({"sent_norms"})

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, the largest update first."""
        return walk(view.ids[descending(view.knowledge.sent_norms(view.ids))])
