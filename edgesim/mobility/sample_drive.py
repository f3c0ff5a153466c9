"""The drive that the repository ships: ten minutes of 50 devices on streets; generated, not recorded.

``python -m edgesim.mobility.sample_drive traces/sample-drive.parquet`` writes it again.
"""

import sys
from pathlib import Path

import numpy as np

from edgesim.devices.places import place_in_disc
from edgesim.mobility.corners import corners
from edgesim.mobility.models.manhattan import Manhattan
from edgesim.mobility.paths import Ground
from edgesim.mobility.position_file import PositionRows, write_positions
from edgesim.streams import Streams

DEVICES, LENGTH_S, _RADIUS_M = 50, 600.0, 250.0


def sample_drive() -> PositionRows:
    """Corners of the ways of 50 devices by the model ``manhattan`` with seed 0: 5 to 15 m/s, streets 50 m apart."""
    streams = Streams(0)
    ground = Ground(_RADIUS_M, *place_in_disc(np.arange(DEVICES), _RADIUS_M, 0.0, streams))
    paths = Manhattan(speed_mps=[5.0, 15.0], block_m=50.0).make(ground, streams)
    ways = corners(paths, DEVICES, LENGTH_S, 1 << 20)
    assert ways is not None
    return PositionRows(*ways)


if __name__ == "__main__":
    write_positions(Path(sys.argv[1]), sample_drive())
