"""Rows of a recording of availability, as tests compare them."""

from edgesim.traces.intervals import Intervals
from edgesim.traces.readers import RecordedAvailability


def rows(found: object) -> list[tuple[int, float, float]]:
    """Device, start and end of each period of intervals or of a recording."""
    made = found.available if isinstance(found, RecordedAvailability) else found
    assert isinstance(made, Intervals)
    return list(zip(made.device.tolist(), made.start_s.tolist(), made.end_s.tolist(), strict=True))
