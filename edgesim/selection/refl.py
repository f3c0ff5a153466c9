"""REFL's choice: Abdelmoniem et al., "REFL: resource-efficient federated learning", EuroSys 2023.

Devices that are about to leave come first, so that many different ones take part; who took part rests for a while.
What late updates count is for `edgesim.learning.algorithms.staleness`.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.needs import Rule
from edgesim.prediction import CheckInLog, make_predictor
from edgesim.selection import view
from edgesim.selection.stateless import walk
from edgesim.selection.ties import by_falling
from edgesim.selection.view import Choice, RoundReport, RoundView, Selector

_ALPHA = 0.25


class ReflOptions(view.Options):
    """Knobs of REFL's choice."""

    goes_with: ClassVar[tuple[Rule, ...]] = (
        Rule({"forecast": "oracle"}, {"predictor": (None, ""), "predictor_options": (None, {})}),
    )

    cool_down: int = Field(5, ge=0, le=100_000)
    """Rounds for which a device is not selected again."""
    forecast: Literal["oracle", "log"] = "oracle"
    """Whether the server reads off the trace which devices stay, as the published code does, or forecasts availability
    in the next round by the check-in log: least likely first."""
    oracle_accuracy: float = Field(0.9, gt=0, le=1)
    """Share of the candidates about which the oracle speaks; the others are left out."""
    predictor: str | None = None
    """With ``forecast = "log"``: a name of `edgesim.prediction.PREDICTORS`, or the dotted path of another; ``poisson``
    when absent. REFL's devices forecast themselves; here the server does by its log, whichever the predictor is."""
    predictor_options: dict[str, Any] | None = None
    """Options of the predictor."""
    history_rounds: int = Field(50, ge=1, le=100_000)
    """Rounds of the log that the forecast looks back on."""
    window: Literal["deadline", "rounds"] = "deadline"
    """How long the slot is that the oracle is asked about: the deadline, or REFL's estimate of a round, which follows
    the lengths of the rounds (`round_estimate_s`). They are one where every round lasts to its deadline."""

    @model_validator(mode="after")
    def _predicts(self) -> Self:
        make_predictor(self.predictor or "poisson", self.predictor_options)
        return self


def round_estimate_s(length_s: float, estimate_s: float) -> float:
    """mu_t = (1 - a) D + a mu_(t-1), a = 0.25, from the last round's length D: REFL, section 4.1."""
    return (1 - _ALPHA) * length_s + _ALPHA * estimate_s


def is_leaving(leaves_s: Floats, slot_s: float) -> Booleans:
    """Whether each device is there for the whole slot that begins now but not for the whole next one, [n].

    ``leaves_s`` [n] are the seconds until each leaves.
    """
    return (leaves_s >= slot_s) & (leaves_s < 2 * slot_s)


@dataclass
class ReflState:
    """Check-ins, selections and round lengths that the server remembers."""

    log: CheckInLog
    last: Integers
    """Round in which each device was last selected, [devices]."""
    estimate_s: float | None = None
    """Expected length of a round; None before the first one, for which the deadline is expected."""


class Refl(Selector):
    """Devices that are rested, the least available first."""

    Options: ClassVar[type[view.Options]] = ReflOptions

    def __init__(self, options: ReflOptions, device_count: int, class_count: int) -> None:
        self.options = options
        self._forecast = make_predictor(options.predictor or "poisson", options.predictor_options)
        self.state = ReflState(
            log=CheckInLog.empty(device_count, options.history_rounds),
            last=np.full(device_count, -options.cool_down - 1, dtype=np.int64),
        )

    @override
    def choose(self, view: RoundView) -> Choice:
        """Yield the candidates that are rested, the least available first."""
        state = self.state
        if state.estimate_s is None or self.options.window == "deadline":
            state.estimate_s = view.tmax_s
        rows = np.flatnonzero(view.round - state.last[view.ids] > self.options.cool_down)
        draw = partial(view.streams.uniform, "selection/refl", round=view.round)
        if self.options.forecast == "log":
            ids = view.ids[rows]
            return by_falling(ids, -self._forecast(state.log, ids, 1), draw)
        # Asked before the shuffle: a trace answers a little faster in the order of its devices.
        leaving = is_leaving(view.estimates.leaves_s(rows, 2 * state.estimate_s), state.estimate_s)
        order = np.argsort(draw(view.ids[rows]), kind="stable")
        rows, leaving = rows[order], leaving[order]
        if len(rows) > view.estimates.places():
            rows = np.concatenate([self._foreseen(rows[leaving]), self._foreseen(rows[~leaving])])
        return walk(view.ids[rows])

    def _foreseen(self, rows: Integers) -> Integers:
        """Rows [n], in random order, about which the oracle speaks: the share ``oracle_accuracy``, rounded down."""
        return rows[: int(len(rows) * self.options.oracle_accuracy + 1e-9)]

    @override
    def hear(self, report: RoundReport) -> None:
        """Record check-ins, selections and the length of a round."""
        state = self.state
        state.log.append(report.checked_in)
        state.last[report.selected] = report.round
        if state.estimate_s is not None:
            state.estimate_s = round_estimate_s(report.length_s, state.estimate_s)
