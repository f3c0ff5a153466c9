"""FedDance: participant selection under intermittent availability (Chen et al., SoCC 2025).

Utility of a device: how likely it is online again soon, times its last training loss, times what its training accuracy
gained per participation; a slowly growing bonus goes to those last used long ago.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.prediction import CheckInLog, make_predictor
from edgesim.selection import view
from edgesim.selection.ties import by_falling
from edgesim.selection.view import Choice, Feedback, RoundReport, RoundView

AccuracyMap = Literal["paper", "shifted", "abs"]


class FedDanceOptions(view.Options):
    """Knobs of FedDance."""

    history_rounds: int = Field(50, ge=1, le=100_000)
    """K_h: rounds of check-ins that the predictor looks back on."""
    future_rounds: int = Field(5, ge=1, le=100_000)
    """K: rounds that it looks ahead."""
    predictor: str | None = None
    """A name of `edgesim.prediction.PREDICTORS`, or the dotted path of another; ``poisson``, its own, when absent."""
    predictor_options: dict[str, Any] | None = None
    """Options of the predictor."""
    accuracy_window: int = Field(5, ge=2, le=100_000)
    """beta: participations over which the accuracy gain is taken."""
    acc_map: AccuracyMap = "shifted"
    """How a gain becomes a factor, see `accuracy_factor`."""
    init_newcomers: bool = False
    """Whether a device gets the participants' means when it first checks in, not a round later."""
    unheard: Literal["zero", "guess"] = "zero"
    """Importance of a device that was selected and has never delivered. ``zero``: Algorithm 1 read literally (line 3
    sets L_m = 0, and line 8 makes it the I_m of all of S_prev) and the published code; such a device comes last, and is
    taken again only where fewer others are there than there are places. ``guess``: it keeps the participants' mean as
    of its first selection; that of an early round lies above all later losses, so devices that are never in time are
    taken again and again, but one that failed once by bad luck gets another chance.
    """
    without: Literal["none", "V", "A", "I", "VA", "U"] = "none"
    """Ablations: factors left out of the utility; U is the bonus."""

    @model_validator(mode="after")
    def _predicts(self) -> Self:
        make_predictor(self.predictor or "poisson", self.predictor_options)
        return self


@dataclass
class FedDanceState:
    """Losses, accuracies and check-ins that the server remembers of every device, [devices] unless noted."""

    log: CheckInLog
    importance: Floats
    """I: mean training loss of the last participation, or the participants' mean for those never selected."""
    gain: Floats
    """A before it is mapped: accuracy gained per participation."""
    accuracies: Floats
    """Training accuracies of the last beta participations, the newest last, [devices, beta]."""
    heard: Integers
    """Participations heard of, beta at most."""
    last: Integers
    """J: the last round whose merge held an update of the device; 0 for never.

    Delivery sets it, not selection: Algorithm 1 has it from the feedback (line 6). Who never delivers keeps the whole
    bonus, at most a factor of 1.3 in 1,000 rounds. (The published code sets it at selection.)
    """
    selected: Booleans
    """Whether it was ever selected."""
    estimated: Booleans
    """Whether ``importance`` and ``gain`` have had a value."""
    mean_importance: float = 0.0
    """Mean over the participants of the last round in which any update arrived."""
    mean_gain: float = 0.0

    def learn(self, feedback: Feedback, round: int) -> None:
        """Record losses and accuracies that came with the updates of a round (Algorithm 1, lines 6 to 12)."""
        ids = feedback.ids
        if len(ids) == 0:
            return
        assert feedback.loss is not None
        assert feedback.accuracy is not None
        self.importance[ids] = feedback.loss
        self.accuracies[ids] = np.column_stack([self.accuracies[ids, 1:], feedback.accuracy])
        self.heard[ids] = np.minimum(self.heard[ids] + 1, self.accuracies.shape[1])
        self.gain[ids] = accuracy_gain(self.accuracies[ids], self.heard[ids])
        self.last[ids] = round
        self.estimated[ids] = True
        self.mean_importance = float(self.importance[ids].mean())
        self.mean_gain = float(self.gain[ids].mean())

    def guess(self, ids: Integers) -> None:
        """Give devices that were never selected the participants' means (lines 13 to 17)."""
        self.importance[ids] = self.mean_importance
        self.gain[ids] = self.mean_gain
        self.estimated[ids] = True


class FedDance:
    """Algorithm 1: devices by falling utility, ties in random order."""

    Options: ClassVar[type[view.Options]] = FedDanceOptions
    looks_at: frozenset[str] = frozenset({"training_losses", "training_accuracies"})

    def __init__(self, options: FedDanceOptions, device_count: int, class_count: int) -> None:
        self.options = options
        self._forecast = make_predictor(options.predictor or "poisson", options.predictor_options)
        self.state = FedDanceState(
            log=CheckInLog.empty(device_count, options.history_rounds),
            importance=np.zeros(device_count),
            gain=np.zeros(device_count),
            accuracies=np.zeros((device_count, options.accuracy_window)),
            heard=np.zeros(device_count, dtype=np.int64),
            last=np.zeros(device_count, dtype=np.int64),
            selected=np.zeros(device_count, dtype=bool),
            estimated=np.zeros(device_count, dtype=bool),
        )

    def choose(self, view: RoundView) -> Choice:
        """Yield all candidates, the highest utility first."""
        draw = partial(view.streams.uniform, "selection/feddance", round=view.round)
        return by_falling(view.ids, self.utilities(view.ids, view.round), draw)

    def utilities(self, ids: Integers, round: int) -> Floats:
        """Utilities U of candidates in a round, [n] (eq. 8 and line 21)."""
        state, options = self.state, self.options
        importance, gain = state.importance[ids], state.gain[ids]
        if options.init_newcomers:
            new = ~state.estimated[ids] & ~state.selected[ids]
            importance = np.where(new, state.mean_importance, importance)
            gain = np.where(new, state.mean_gain, gain)
        utility = np.ones(len(ids))
        if options.without not in ("V", "VA"):
            utility *= self._forecast(state.log, ids, options.future_rounds)
        if options.without != "I":
            utility *= importance
        if options.without not in ("A", "VA"):
            utility *= accuracy_factor(gain, options.acc_map)
        if options.without != "U":
            utility *= bonus(round, state.last[ids])
        return utility

    def hear(self, report: RoundReport) -> None:
        """Record losses, accuracies and check-ins; devices that never were selected get the participants' means."""
        state = self.state
        state.selected[report.selected] = True
        state.learn(report.feedback, report.round)
        if self.options.unheard == "zero":
            state.importance[report.selected[state.heard[report.selected] == 0]] = 0.0
        state.guess(report.checked_in[~state.selected[report.checked_in]])
        state.log.append(report.checked_in)


def accuracy_gain(accuracies: Floats, heard: Integers) -> Floats:
    """Mean increment over the last participations, [n]: eq. 7, telescoped.

    ``accuracies`` [n, beta], the newest last, of which ``heard`` [n] are real; with fewer than beta the increments
    there are count, and with one participation there is none: 0.
    """
    rows, beta = np.arange(len(heard)), accuracies.shape[1]
    rise = accuracies[:, -1] - accuracies[rows, beta - np.maximum(heard, 1)]
    return np.asarray(rise / np.maximum(heard - 1, 1))


def accuracy_factor(gain: Floats, acc_map: AccuracyMap) -> Floats:
    """A as a factor of the utility, [n].

    ``paper`` is the gain itself, which can be negative: then a higher loss or bonus lowers the utility, and the device
    is hardly ever picked again. ``shifted``, (1 + gain) / 2, is positive and rises with the gain; ``abs``,
    (1 + |gain|) / 2, is the published code's.
    """
    if acc_map == "paper":
        return gain
    return np.asarray((1 + (np.abs(gain) if acc_map == "abs" else gain)) / 2)


def bonus(round: int, last: Integers) -> Floats:
    """1 + log10(R + 1) / (10 (1 + J)), [n]: line 21."""
    return np.asarray(1 + np.log10(round + 1) / (10 * (1 + last)))
