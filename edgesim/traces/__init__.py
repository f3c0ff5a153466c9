"""Traces: which device is available when."""

from edgesim.traces.availability import Always, Availability, Bernoulli, IntervalTable, make_availability
from edgesim.traces.intervals import Intervals, read_intervals

__all__ = [
    "Always",
    "Availability",
    "Bernoulli",
    "IntervalTable",
    "Intervals",
    "make_availability",
    "read_intervals",
]
