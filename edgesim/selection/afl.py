"""AFL's choice: the devices with the highest weighted sum of update quality, communication and resources.

Where the paper leaves the three scores and the number of participants open, this is edgesim's own reading. What an
update then counts is `edgesim.learning.algorithms.afl`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from edgesim.base.arrays import Floats, Integers
from edgesim.base.quantities import Factor
from edgesim.selection import view
from edgesim.selection.ties import TIE, descending
from edgesim.selection.view import Choice, RoundReport, RoundView

_LEAST, _MOST = 0.1, 0.5
"""Shares of the devices of the run between which an adaptive number of participants lies."""
_LOTS = "selection/afl"


class AflPolicyOptions(view.Options):
    """Knobs of AFL's choice."""

    quality: Factor = Field(1 / 3, ge=0)
    """beta_1: weight of Q, by how much the loss on a device's own data fell in its last job."""
    communication: Factor = Field(1 / 3, ge=0)
    """beta_2: weight of C, one over the expected time of download and upload."""
    resources: Factor = Field(1 / 3, ge=0)
    """beta_3: weight of R, the device's speed over that of the fastest candidate."""
    participants: Literal["fixed", "adaptive"] = "fixed"
    """``fixed``: ``share`` of the devices of the run, rounded down; ``adaptive``: as many as score no less than the
    mean, at least 10 % and at most 50 % of the devices of the run."""
    share: float = Field(0.35, gt=0, le=1)
    """Share of the devices that are chosen in a round, where their number is ``fixed``."""
    explore: float = Field(0.1, ge=0, le=1)
    """Share of the places drawn at random; devices that were never selected are then first. With 0 there is neither,
    as in the paper: those that were chosen first are chosen for ever, as no other device ever gets a Q."""


@dataclass
class AflState:
    """Loss drops of every device, as the server remembers them."""

    loss_drop: Floats
    """Loss before less loss after the last job that was merged, in nats, [devices]; nan before the first."""


class AflPolicy:
    """Top-m by score, after devices that were never selected, and with a random share."""

    Options: ClassVar[type[view.Options]] = AflPolicyOptions
    looks_at: frozenset[str] = frozenset({"loss_drops"})

    def __init__(self, options: AflPolicyOptions, device_count: int, class_count: int) -> None:
        self.options = options
        self.state = AflState(np.full(device_count, np.nan))
        if options.quality == 0:
            # Only this object does without.
            self.looks_at = frozenset()

    def choose(self, view: RoundView) -> Choice:
        """Yield the best m candidates, and others in the place of those that are not taken."""
        if len(view.ids) == 0:
            return
        score, options = self.scores(view), self.options
        lots = view.streams.uniform(_LOTS, view.ids, view.round)
        by_score = _by_score(score, lots)
        wanted = self._wanted(score)
        ahead = np.empty(0, dtype=np.int64)
        if options.explore:
            new = np.flatnonzero(view.times_selected == 0)
            ahead = new[np.argsort(lots[new], kind="stable")][:wanted]
            left = wanted - len(ahead)
            # Rounded by lot, so that it is the share on average however few places there are.
            drawn = math.floor(
                options.explore * left + view.streams.generator(f"{_LOTS}/explore", round=view.round).random()
            )
            best = without(by_score, ahead)[: left - drawn]
            others = without(np.argsort(lots, kind="stable"), np.concatenate([ahead, best]))
            ahead = np.concatenate([ahead, best, others[:drawn]])
        order = np.concatenate([ahead, without(by_score, ahead)])
        while wanted and len(order):
            taken = yield view.ids[order[:wanted]]
            order, wanted = order[wanted:], wanted - int(np.count_nonzero(taken))

    def scores(self, view: RoundView) -> Floats:
        """Gamma of the candidates, [n]; nan where Q counts and is not known."""
        rows = np.arange(len(view.ids))
        link_s = view.estimates.download_s(rows) + view.estimates.upload_s(rows, len(rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = view.work_samples / np.asarray(view.delay_s[rows])
            rate = 1 / link_s
        # A link or a job that takes no time is as good as any other of these.
        rate, speed = (np.where(np.isinf(values), np.finfo(float).max, values) for values in (rate, speed))
        terms = self.state.loss_drop[view.ids], rate, speed / speed.max()
        return weighted(terms, (self.options.quality, self.options.communication, self.options.resources))

    def _wanted(self, score: Floats) -> int:
        """m, the number of places, for candidates of these scores [n]."""
        devices, known = len(self.state.loss_drop), score[~np.isnan(score)]
        if self.options.participants == "fixed" or len(known) == 0:
            return share_of(self.options.share, devices)
        good = int(np.count_nonzero(known >= known.mean() - TIE * np.abs(known).max()))
        return min(max(good, share_of(_LEAST, devices)), share_of(_MOST, devices))

    def hear(self, report: RoundReport) -> None:
        """Record how much the losses of the devices fell."""
        if report.feedback.loss_drop is not None:
            self.state.loss_drop[report.feedback.ids] = report.feedback.loss_drop


def _by_score(score: Floats, lots: Floats) -> Integers:
    """Rows by falling score, [n], those without one last; rows that tie by rising lots, [n]."""
    known, unknown = np.flatnonzero(~np.isnan(score)), np.flatnonzero(np.isnan(score))
    scored = known[descending(score[known], then=lots[known])]
    return np.concatenate([scored, unknown[np.argsort(lots[unknown], kind="stable")]])


def weighted(terms: Sequence[Floats], betas: Sequence[float]) -> Floats:
    """Gamma of candidates, [n], from Q, C and R, [n] each: Q and C scaled to [0, 1], R as it is.

    A term of weight 0 is not looked at.
    """
    quality, communication, resources = terms
    scaled = to_unit(quality), to_unit(communication), resources
    counted = [beta * term for beta, term in zip(betas, scaled, strict=True) if beta > 0]
    return np.sum(counted, axis=0) if counted else np.zeros(len(quality))


def to_unit(values: Floats) -> Floats:
    """Values, [n], shifted and scaled so that the least is 0 and the greatest 1; .5 where all are equal.

    Those that are nan stay so and do not count.
    """
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return values
    low, high = known.min(), known.max()
    if high - low <= TIE * max(abs(low), abs(high)):
        return np.where(np.isnan(values), np.nan, 0.5)
    return np.asarray((values - low) / (high - low))


def share_of(share: float, count: int) -> int:
    """A share of so many, rounded down but at least 1."""
    return max(1, math.floor(share * count + 1e-9))


def without(rows: Integers, others: Integers) -> Integers:
    """``rows`` [n] in their order, but for ``others``."""
    return np.asarray(rows[~np.isin(rows, others)])
