"""Arrivals of a round that are merged: all of them, or those that the policy drafts (SAFA)."""

from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.engine.offers import Offers
from edgesim.engine.open_round import OpenRound
from edgesim.engine.run_parts import RunParts
from edgesim.selection.view import Drafter


class AllArrivals:
    """All updates that arrived in time are picked."""

    def split(self, this: OpenRound, arrived: Integers) -> tuple[Integers, Integers]:
        """Devices whose updates are picked, and those whose updates are not, of those that arrived in time."""
        return arrived, arrived[:0]


@dataclass
class Drafted(AllArrivals):
    """The policy picks among the updates that arrived in time."""

    drafter: Drafter
    policy: str

    @override
    def split(self, this: OpenRound, arrived: Integers) -> tuple[Integers, Integers]:
        picked = self.drafter.draft(_by_arrival(this, arrived), len(this.candidates))
        Offers(self.policy, this.number.round, np.sort(arrived), "those whose updates arrived").rows(picked)
        return picked, np.setdiff1d(arrived, picked)


def _by_arrival(this: OpenRound, ids: Integers) -> Integers:
    """Devices whose updates arrived, in order of arrival, the lowest id first at one instant."""
    tasks = [this.working[device].task for device in ids.tolist()]
    arrived_s = np.array([task.spans[-1].t_end_s + task.backhaul_s for task in tasks])
    return ids[np.lexsort((ids, arrived_s))]


def make_drafting(parts: RunParts) -> AllArrivals:
    """The way in which a run picks among a round's arrivals."""
    if isinstance(parts.selector, Drafter):
        return Drafted(parts.selector, parts.world.config.selection.policy)
    return AllArrivals()
