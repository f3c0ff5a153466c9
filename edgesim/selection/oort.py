"""Oort: Lai et al., "Oort: efficient federated learning via guided participant selection", OSDI 2021.

Exploits devices of high loss that are fast enough, and explores untried ones. How fast is fast enough, a pacer decides:
it gives time when the utility of those exploited no longer changes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.quantities import Factor
from edgesim.selection import view
from edgesim.selection.stateless import walk
from edgesim.selection.ties import descending
from edgesim.selection.view import Choice, RoundReport, RoundView

_CLIP = 0.9
_POOL = 5
_LEAST_RANGE = 1e-4


class OortOptions(view.Options):
    """Knobs of Oort; defaults as FedDance ran it."""

    at_most: ClassVar[tuple[tuple[str, str], ...]] = (("exploration_min", "exploration"),)

    exploration: float = Field(0.9, ge=0, le=1)
    """Share of the places for untried devices in the first round."""
    exploration_decay: float = Field(0.98, gt=0, le=1)
    """Factor on it per round."""
    exploration_min: float = Field(0.3, ge=0, le=1)
    """Least share for untried devices."""
    cut: float = Field(0.05, ge=0, le=1)
    """Share of the score of the last place that still lets a device into the pool to be exploited."""
    penalty: Factor = Field(2.0, ge=0)
    """Power of preferred over own duration by which slow devices count less."""
    pacer_start: float = Field(30.0, gt=0, le=100)
    """Percentile of all durations that is preferred at first."""
    pacer_step: int = Field(20, ge=1, le=100_000)
    """Rounds between two looks of the pacer."""
    pacer_delta: float = Field(5.0, gt=0, le=100)
    """Percentile points by which it moves."""


@dataclass
class OortState:
    """Utilities and durations that the server remembers of every device, [devices] unless noted."""

    utility: Floats
    """u: number of samples times the root mean square of their losses."""
    duration_s: Floats
    """Seconds measured in the last participation, or planned before the first; nan before the first check-in."""
    last: Integers
    """The last round in whose report the device was."""
    tried: Booleans
    size: Integers
    """Different samples that a job of the device trains on."""
    pacer_percent: float
    """Percentile of durations that is preferred."""
    exploited_utility: Floats
    """Mean utility of those exploited who arrived, per round, a ring of two steps of the pacer."""
    exploited: Integers
    """Devices offered last as exploited ones."""


class Oort:
    """Offer exploited devices first, then explored ones, then all others at random."""

    Options: ClassVar[type[view.Options]] = OortOptions
    looks_at: frozenset[str] = frozenset({"training_losses"})

    def __init__(self, options: OortOptions, device_count: int, class_count: int) -> None:
        self.options = options
        self.state = OortState(
            utility=np.zeros(device_count),
            duration_s=np.full(device_count, np.nan),
            last=np.zeros(device_count, dtype=np.int64),
            tried=np.zeros(device_count, dtype=bool),
            size=np.zeros(device_count, dtype=np.int64),
            pacer_percent=options.pacer_start,
            exploited_utility=np.zeros(2 * options.pacer_step),
            exploited=np.empty(0, dtype=np.int64),
        )

    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates: as many exploited and explored as there are places, then the rest."""
        state, options, ids, streams = self.state, self.options, view.ids, view.streams
        if len(ids) == 0:
            return
        places = view.estimates.places()
        self._register(view, places)
        if view.round >= 2 * options.pacer_step and view.round % options.pacer_step == 0:
            half = view.round % (2 * options.pacer_step)
            recent = np.roll(state.exploited_utility, -half).reshape(2, -1).sum(axis=1)
            state.pacer_percent = paced(state.pacer_percent, recent[0], recent[1], options.pacer_delta)
        preferred_s = preferred_duration_s(state.duration_s, state.pacer_percent)
        slowness = time_factor(state.duration_s[ids], preferred_s, options.penalty)

        tried, untried = np.flatnonzero(state.tried[ids]), np.flatnonzero(~state.tried[ids])
        scores = statistical_scores(state.utility[ids[tried]], state.last[ids[tried]], view.round) * slowness[tried]
        exploited = exploit_count(places, exploration_share(view.round, options), len(tried))
        pool = exploit_pool(scores, exploited, options.cut)
        arrivals = streams.exponential("selection/oort-exploit", ids[tried[pool]], view.round)
        exploit = tried[pool[weighted(scores[pool], arrivals, exploited)]]

        explored = min(len(untried), places - exploited)
        promise = state.size[ids[untried]] * slowness[untried]
        pool = descending(promise)[: _POOL * explored]
        arrivals = streams.exponential("selection/oort-explore", ids[untried[pool]], view.round)
        explore = untried[pool[weighted(promise[pool], arrivals, explored)]]

        state.exploited = ids[exploit]
        picked = ids[np.concatenate([exploit, explore])]
        yield from walk(picked)
        rest = np.setdiff1d(ids, picked, assume_unique=True)
        yield from walk(rest[np.argsort(streams.uniform("selection/oort-rest", rest, view.round), kind="stable")])

    def _register(self, view: RoundView, places: int) -> None:
        """Record the sizes of the candidates, and the planned durations of new devices."""
        state = self.state
        state.size[view.ids] = np.minimum(view.samples, view.work_samples)
        new = np.flatnonzero(np.isnan(state.duration_s[view.ids]))
        if len(new):
            state.duration_s[view.ids[new]] = view.estimates.finish_s(new, places)

    def hear(self, report: RoundReport) -> None:
        """Record losses and durations; devices that were selected in vain get the mean utility of the round."""
        state, ids = self.state, report.feedback.ids
        exploited = 0.0
        state.duration_s[ids] = report.feedback.duration_s
        if report.received is not None:
            self._hear_streams(report, report.received)
        if len(ids):
            assert report.feedback.loss_rms is not None
            state.utility[ids] = state.size[ids] * report.feedback.loss_rms
            missing = np.setdiff1d(report.selected, ids)
            state.utility[missing] = state.utility[ids].mean()
            reported = np.concatenate([ids, missing])
            state.tried[reported] = True
            state.last[reported] = report.round
            both = np.intersect1d(state.exploited, ids)
            exploited = float(state.utility[both].mean()) if len(both) else 0.0
        state.exploited_utility[report.round % len(state.exploited_utility)] = exploited
        state.exploited = np.empty(0, dtype=np.int64)

    def _hear_streams(self, report: RoundReport, received: Floats) -> None:
        """Lengthen the uploads of streams by what was not received of them: all end by the deadline, whole or not.

        One of which nothing came takes the round at least, and what a device takes that left is not known.
        """
        duration_s, feedback, share = self.state.duration_s, report.feedback, np.ones(len(self.state.duration_s))
        share[report.selected] = received
        duration_s[feedback.ids] += feedback.upload_s * (1 / share[feedback.ids] - 1)
        silent = report.selected[received == 0]
        duration_s[silent] = np.maximum(duration_s[silent], report.length_s)


def exploration_share(round: int, options: OortOptions) -> float:
    """epsilon of a round, from 1."""
    return max(options.exploration_min, options.exploration * options.exploration_decay ** (round - 1))


def exploit_count(places: int, exploration: float, tried: int) -> int:
    """Places for tried devices: floor(N (1 - epsilon)), no more than there are."""
    return min(math.floor(places * (1 - exploration) + 1e-9), tried)


def statistical_scores(utility: Floats, last: Integers, round: int) -> Floats:
    """Scores of tried devices by utility u and age, [n]: utilities are clipped at the 90th percentile.

    (min(u, clip) - u_min) / (u_max - u_min) + sqrt(0.1 ln R / last round), u_min taken 0.1 % lower.
    """
    if len(utility) == 0:
        return np.empty(0)
    low, high = 0.999 * float(utility.min()), float(utility.max())
    clipped = np.minimum(utility, _percentile(utility, _CLIP))
    return np.asarray((clipped - low) / max(high - low, _LEAST_RANGE) + np.sqrt(0.1 * math.log(round) / last))


def time_factor(duration_s: Floats, preferred_s: float, penalty: float) -> Floats:
    """(T_pref / t)^penalty for devices slower than preferred, 1 for the others, [n]."""
    ratio = np.divide(preferred_s, duration_s, out=np.ones(len(duration_s)), where=duration_s > preferred_s)
    return np.asarray(ratio**penalty)


def preferred_duration_s(duration_s: Floats, percent: float) -> float:
    """T_pref: a percentile of the durations known, [devices], nan where not; inf from 100 % on."""
    known = duration_s[~np.isnan(duration_s)]
    return _percentile(known, percent / 100) if percent < 100 else math.inf


def exploit_pool(scores: Floats, count: int, cut: float) -> Integers:
    """Rows of ``scores``, [n], that reach the cut of the score of place ``count``, counted from 0."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    place = min(count, len(scores) - 1)
    bar = -np.partition(-scores, place)[place]
    return np.flatnonzero(scores >= cut * bar)


def weighted(weights: Floats, arrivals: Floats, count: int) -> Integers:
    """Rows drawn one after another in proportion to ``weights`` [n], without replacement, in order.

    ``arrivals`` [n] are unit exponentials: over the weights, they are first arrivals of Poisson processes
    (Efraimidis and Spirakis, Information Processing Letters 97, 2006). Rows of weight 0 come last.
    """
    with np.errstate(divide="ignore"):
        times = arrivals / weights
    return np.argsort(times, kind="stable")[:count]


def paced(percent: float, before: float, now: float, delta: float) -> float:
    """The pacer's percentile after utilities summed over two successive spans of rounds.

    Up where they differ by at most 10 %, down where they differ fivefold or more; between delta and 100.
    """
    if abs(now - before) <= 0.1 * before:
        return min(100.0, percent + delta)
    if abs(now - before) >= 5 * before:
        return max(delta, percent - delta)
    return percent


def _percentile(values: Floats, share: float) -> float:
    """The value at a share of the way up the sorted ``values``, [n]."""
    place = min(int(len(values) * share), len(values) - 1)
    return float(np.partition(values, place)[place])
