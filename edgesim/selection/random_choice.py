"""Random: a uniform permutation of the candidates (a baseline of FedTeddi, section V)."""

import numpy as np

from edgesim.selection.stateless import Stateless, walk
from edgesim.selection.view import Choice, RoundView


class RandomChoice(Stateless):
    """Devices in the order of one uniform draw each, so that who else is there changes no relative order."""

    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates in random order."""
        draws = view.streams.uniform("selection/random", view.ids, view.round)
        return walk(view.ids[np.argsort(draws, kind="stable")])
