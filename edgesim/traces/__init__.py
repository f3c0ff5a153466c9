"""Traces of devices: availability models, and readers of recorded availability, compute speed and link capacity."""

from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.interval_file import read_intervals, write_intervals
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.models import MODELS, make_availability
from edgesim.traces.slots import Slots

__all__ = [
    "MODELS",
    "Availability",
    "ByRounds",
    "IntervalTable",
    "Intervals",
    "Slots",
    "make_availability",
    "read_intervals",
    "write_intervals",
]
