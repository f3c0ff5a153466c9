"""SAFA's choice: Wu et al., "SAFA: a semi-asynchronous protocol for fast federated learning", IEEE TC 2021.

Everybody who is there trains. Compensatory first-come-first-merge: of those who finish in time, first the ones not
picked last round, then the rest, in order of arrival, up to a quota. What the server does with versions and with the
updates not picked is `edgesim.learning.algorithms.safa` (``algorithm.name = "safa"``); a plain average loses the
latter.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.selection import view
from edgesim.selection.ties import descending
from edgesim.selection.view import Choice, RoundView, Selector


class SafaPolicyOptions(view.Options):
    """Knobs of SAFA's choice."""

    quota: float = Field(0.1, gt=0, le=1)
    """Share of the candidates picked in a round, rounded up."""


def first_come_first_merge(finish_s: Floats, picked_before: Booleans) -> Integers:
    """Rows by rising ``finish_s`` [n], those ``picked_before`` [n] behind all others."""
    order = descending(-finish_s)
    last = picked_before[order]
    return np.concatenate([order[~last], order[last]])


@dataclass
class SafaState:
    """Devices that the server picked last round."""

    picked: Booleans
    """Whether it was picked last round, [devices]."""


class SafaPolicy(Selector):
    """Everybody, as they are expected to finish when they share the band equally; those picked last round wait."""

    Options: ClassVar[type[view.Options]] = SafaPolicyOptions

    def __init__(self, options: SafaPolicyOptions, device_count: int, class_count: int) -> None:
        self.options = options
        self.state = SafaState(np.zeros(device_count, dtype=bool))

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, for an admission that cannot take all of them in the order of the merge."""
        rows = np.arange(len(view.ids), dtype=np.int64)
        if len(rows) == 0:
            return
        finish_s = view.estimates.ready_s(rows) + view.estimates.upload_s(rows, len(rows))
        yield view.ids[first_come_first_merge(finish_s, self.state.picked[view.ids])]

    def draft(self, arrived: Integers, candidates: int) -> Integers:
        """The quota's share of the candidates, in order of arrival, those picked last round behind all others."""
        quota = math.ceil(self.options.quota * candidates - 1e-9)
        rows = first_come_first_merge(np.arange(len(arrived), dtype=np.float64), self.state.picked[arrived])
        picks = arrived[rows[:quota]]
        self.state.picked[:] = False
        self.state.picked[picks] = True
        return picks
