"""Recorded positions, such as those of a traffic simulator or of phones."""

from typing import Literal

from pydantic import Field
from typing_extensions import override

from edgesim.base.content import find
from edgesim.base.device_keys import need_devices
from edgesim.mobility.models.motion import Motion
from edgesim.mobility.paths import Ground, Paths
from edgesim.mobility.position_file import read_positions
from edgesim.mobility.recorded_paths import RecordedPaths
from edgesim.streams import Streams


class Recorded(Motion):
    """Device k of a run moves as device k of the file; no draws. Further devices of the file are left out."""

    file: str = Field(min_length=1)
    """Path, or name of a file under ``traces/``: CSV or Parquet with the columns device, t_s, x_m and y_m."""
    after_end: Literal["wrap", "hold"] | None = None
    """``wrap``: the table is repeated after its last second; ``hold``: devices stay where they are then; None: a run
    must end before."""

    @override
    def make(self, ground: Ground, streams: Streams) -> Paths:
        path = find("traces", self.file, ".parquet", "mobility.file", "x_m")
        rows = read_positions(path)
        need_devices(str(path), "recording", rows.device_count, len(ground))
        return RecordedPaths(rows, len(ground), self.after_end == "wrap", self.after_end == "hold", path)
