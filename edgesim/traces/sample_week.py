"""The week that the repository ships: generated, not recorded, and the same on every machine.

``python -m edgesim.traces.sample_week traces/sample-week.parquet`` writes it again.
"""

import sys
from pathlib import Path

from edgesim.streams import Streams
from edgesim.traces.interval_file import write_intervals
from edgesim.traces.intervals import Intervals
from edgesim.traces.models.renewal import Renewal

DEVICES = 200


def sample_week() -> Intervals:
    """A week of 200 phones: the model ``renewal`` with its defaults and seed 0."""
    return Renewal().intervals(DEVICES, Streams(0))


if __name__ == "__main__":
    write_intervals(Path(sys.argv[1]), sample_week())
