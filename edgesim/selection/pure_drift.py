"""Pure Drift: whose label mix changed most (a baseline of FedTeddi, section V)."""

from typing_extensions import override

from edgesim.selection.shares import share_changes
from edgesim.selection.stateless import Stateless, walk
from edgesim.selection.ties import descending
from edgesim.selection.view import Choice, RoundView


class PureDrift(Stateless):
    """Devices by falling ``sum_c |p_{n,l}^(c) - p_{n,l-1}^(c)|``, ties in random order."""

    looks_at: frozenset[str] = frozenset({"class_counts"})

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, the largest change of label mix first."""
        draws = view.streams.uniform("selection/pure-drift", view.ids, view.round)
        return walk(view.ids[descending(share_changes(view).sum(axis=1), then=draws)])
