"""States of devices in the timeline: an activity, or how the work was lost."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from edgesim.activities import ACTIVITIES as OF_DEVICES
from edgesim.base.arrays import Integers
from edgesim.plots.palette import KIND_COLORS

AWAY = "away"
ACTIVITIES = (*OF_DEVICES, AWAY)
"""Activities of bars; ``away`` is a device that is absent, also between a row that was paused and the next one."""
IN_PART = "in part"
OUTCOMES = ("done", "late", "dropped", "cancelled", "unscheduled", "paused", "skipped", "kept", IN_PART)
"""Those of ``activities``, and ``in part`` of an upload of which the server uses what it received by the deadline."""


class TimelineState(NamedTuple):
    """A colour of the timeline, in the light and in the dark."""

    name: str
    light: str
    dark: str


STATES = (
    TimelineState("unscheduled", KIND_COLORS["unscheduled"], "#7a7a7a"),
    *(TimelineState(name, of.color.lower(), of.dark) for name, of in OF_DEVICES.items()),
    TimelineState("received in part", "#7fb4d8", "#2a5f86"),
    TimelineState(AWAY, "#dddddd", "#454545"),
    TimelineState("skipped", "#9d86b8", "#a792c4"),
    TimelineState("kept", "#009e73", "#22b78c"),
    TimelineState("cancelled", "#8a6a4f", "#a98a70"),
    TimelineState("late", KIND_COLORS["late"].lower(), "#d6cf5a"),
    TimelineState("dropped", KIND_COLORS["dropped"].lower(), "#ff7a2e"),
)
"""In the order in which they are drawn: what was lost lies above what was done, in the colours of the charts.

An activity that ended well, or is resumed later, is shown by its own name; any other by its outcome.
"""

NAMES = tuple(state.name for state in STATES)


def codes(activities: pd.DataFrame) -> Integers:
    """Activity and outcome of each row as one number, activity x outcomes + outcome, [rows]."""
    activity = pd.Categorical(activities["activity"], categories=list(ACTIVITIES)).codes.astype(np.int64)
    outcome = pd.Categorical(activities["outcome"], categories=list(OUTCOMES)).codes.astype(np.int64)
    return np.asarray(activity * len(OUTCOMES) + outcome)


def state_of_code() -> list[int]:
    """Place in `STATES` of each number that `codes` can give."""
    shown, names = {"done", "paused"}, {IN_PART: "received in part"}
    return [
        NAMES.index(activity if outcome in shown or activity == AWAY else names.get(outcome, outcome))
        for activity in ACTIVITIES
        for outcome in OUTCOMES
    ]
