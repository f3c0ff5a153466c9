"""The cell map: what a device's colour says, and who is drawn where."""

import numpy as np
import pandas as pd
import pytest
from whole_runs import TIMED, play

from edgesim.analysis.metrics import scheduled_share
from edgesim.analysis.runs import RunFolder
from edgesim.folder.rows_file import WAYS
from edgesim.plots.cell_map import draw_cell_map


def test_the_share_counts_uploads_whatever_became_of_them():
    acts = pd.DataFrame(
        [(1, 0, "upload"), (1, 0, "upload"), (1, 1, "compute"), (2, 0, "upload"), (2, 1, "upload"), (3, 2, "compute")],
        columns=["round", "device", "activity"],
    )
    assert scheduled_share(acts, np.array([2, 1, 0, 9]), 4).tolist() == [0, 0.25, 0.5, 0]


def simulated(folder, **sections) -> RunFolder:
    """A run without training, of devices that move or stand."""
    base = {"rounds": 1, "round": {"payload_bits": 1e6}}
    return RunFolder(play(folder, TIMED, base, sections).folder, {}, 0)


def test_every_device_is_drawn_once_where_it_stands(tmp_path):
    many = {"devices": {"count": 40}, "round": {"payload_bits": 1.8e7}}
    run = simulated(tmp_path, rounds=5, topology={"file": "three-cells"}, **many)
    figure = draw_cell_map(run)
    assert not figure.get_suptitle()
    *dots, masts = figure.axes[0].collections
    assert len(dots) == 3
    drawn = {tuple(point) for group in dots for point in group.get_offsets().tolist()}
    placed = run.devices.query("frame == 1")
    assert drawn == set(zip(placed["x_m"], placed["y_m"], strict=True))
    assert masts.get_offsets().tolist() == run.stations[["x_m", "y_m"]].to_numpy().tolist()
    colours = np.concatenate([group.get_array() for group in dots])
    assert colours.sum() == pytest.approx(run.rounds["selected"].sum() / 5)


def test_ways_of_devices_that_move_are_lines_from_where_they_are_drawn(tmp_path):
    moving = {"mobility": {"model": "direction", "speed_mps": [20.0, 30.0], "turn_s": 0.7}, "devices": {"count": 5}}
    run = simulated(tmp_path, rounds=4, round={"payload_bits": 1e6, "close": "deadline"}, **moving)
    lines, dots, _ = draw_cell_map(run).axes[0].collections
    ways, drawn = WAYS.read(tmp_path), lines.get_segments()
    assert len(drawn) == 5
    assert sum(map(len, drawn)) == len(ways)
    assert np.array([way[0] for way in drawn]) == pytest.approx(dots.get_offsets())


CELLS = [f"devices first at {name}" for name in ("north-west", "south-west", "east")]


@pytest.mark.parametrize(
    ("devices", "topology", "said"),
    [
        (5, {}, ["device, where it begins", "way of a device"]),
        (61, {}, ["device, where it begins", "ways of devices 0 to 59"]),
        (5, {"topology": {"file": "three-cells"}}, [*CELLS, "way of a device"]),
    ],
)
def test_the_legend_says_where_devices_that_move_are_and_whose_ways_are_drawn(tmp_path, devices, topology, said):
    run = simulated(tmp_path, devices={"count": devices}, mobility={"model": "direction"}, **topology)
    (legend,) = draw_cell_map(run).legends
    assert [text.get_text() for text in legend.get_texts()] == ["station", *said]
