"""Random: a uniform permutation of the candidates (a baseline of FedTeddi, section V)."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.selection.stateless import Stateless, walk
from edgesim.selection.view import Choice, RoundView

_AT_FIRST = 1024


class RandomChoice(Stateless):
    """Devices in the order of one uniform draw each, so that who else is there changes no relative order."""

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates in random order."""
        draws = view.streams.uniform("selection/random", view.ids, view.round)
        return _by_rising(view.ids, draws)


def _by_rising(ids: Integers, draws: Floats) -> Choice:
    """Offer devices by rising draw, the first thousand before the others are put in order at all."""
    if len(ids) > 2 * _AT_FIRST:
        split = np.argpartition(draws, _AT_FIRST)
        first = np.sort(split[:_AT_FIRST])
        yield ids[first[np.argsort(draws[first], kind="stable")]]
        rest = np.sort(split[_AT_FIRST:])
        ids, draws = ids[rest], draws[rest]
    yield from walk(ids[np.argsort(draws, kind="stable")])
