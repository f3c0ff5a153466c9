"""Recorded availability: a file of intervals."""

from pydantic import Field

from edgesim.errors import EdgesimError
from edgesim.files.content import find
from edgesim.streams import Streams
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.interval_table import AfterEnd
from edgesim.traces.intervals import Intervals, first_devices
from edgesim.traces.models.options import Repeated


class Table(Repeated):
    """Device k of the run is device k of the file; further devices of the file are left out."""

    file: str
    """Path, or name of a file under ``traces/``: CSV or Parquet with the columns device, start_s, end_s."""
    after_end: AfterEnd = "raise"
    length_s: float | None = Field(None, gt=0)
    """When the recording ends, if the file does not say; the default is the last end in the file."""

    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """The file's periods; raises `EdgesimError` for a bad file or one of too few devices."""
        intervals = read_intervals(find("traces", self.file, ".parquet"), self.length_s)
        if intervals.device_count < device_count:
            raise EdgesimError(
                f"{intervals.name}: is a trace of {intervals.device_count} devices, but devices.count is "
                f"{device_count}; lower devices.count or give a trace of more devices",
                "devices.count",
            )
        return first_devices(intervals, device_count)
