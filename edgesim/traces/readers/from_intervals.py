"""Interval files as recordings of availability, with recording lengths from a second file if wanted."""

from pathlib import Path

from edgesim.traces.interval_file import read_intervals
from edgesim.traces.lengths_file import with_lengths
from edgesim.traces.readers.results import RecordedAvailability


def read_interval_availability(
    path: Path, length_s: float | None = None, lengths: Path | None = None
) -> RecordedAvailability:
    """Read an interval file; the recording lengths in a file of ``lengths`` replace those of the interval file.

    Raises `EdgesimError` for a bad file.
    """
    available = read_intervals(path, length_s)
    return RecordedAvailability(available if lengths is None else with_lengths(available, lengths))
