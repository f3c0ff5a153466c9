"""The drive that the repository ships, beside its program."""

from pathlib import Path

import numpy as np
import pytest

from edgesim.mobility.models import make_paths
from edgesim.mobility.paths import Ground
from edgesim.mobility.position_file import read_positions
from edgesim.mobility.sample_drive import DEVICES, LENGTH_S, sample_drive
from edgesim.streams import Streams

SHIPPED = Path(__file__).parents[2] / "traces" / "sample-drive.parquet"


def test_the_shipped_drive_is_what_its_program_writes():
    shipped, made = read_positions(SHIPPED), sample_drive()
    assert shipped.device.tolist() == made.device.tolist()
    for name in ("t_s", "x_m", "y_m"):
        assert getattr(shipped, name) == pytest.approx(getattr(made, name), abs=1e-9), name
    assert SHIPPED.stat().st_size < 100_000


def test_the_drive_lasts_ten_minutes_and_stays_on_its_streets():
    ground = Ground(250.0, *np.zeros((2, DEVICES)))
    moving = make_paths("recorded", {"file": str(SHIPPED)}, ground, Streams(0))
    assert moving.known_until_s == LENGTH_S == 600.0
    for t_s in np.linspace(0.0, LENGTH_S, 31):
        blocks = np.stack(moving.positions(np.arange(DEVICES), float(t_s))) / 50.0
        assert (np.abs(blocks - np.rint(blocks)).min(axis=0) < 1e-9).all()
        assert (np.abs(blocks) <= 5.0 + 1e-9).all()
