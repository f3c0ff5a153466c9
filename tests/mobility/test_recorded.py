"""Recorded positions: every answer against a device's rows one by one, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import in_one_line

from edgesim.mobility.models import make_paths
from edgesim.mobility.paths import Ground, Paths
from edgesim.mobility.position_file import PositionRows, read_positions
from edgesim.mobility.recorded_paths import RecordedPaths
from edgesim.streams import Streams

HEAD = "device,t_s,x_m,y_m\n"
Row = tuple[float, float, float]


def csv(folder: Path, body: str, head: str = HEAD) -> Path:
    path = folder / "positions.csv"
    path.write_text(head + body)
    return path


def made(devices: list[list[Row]], after_end: str | None) -> RecordedPaths:
    device = np.repeat(np.arange(len(devices)), [len(rows) for rows in devices])
    t_s, x_m, y_m = np.array([row for rows in devices for row in rows], dtype=float).T
    rows = PositionRows(device, t_s, x_m, y_m)
    return RecordedPaths(rows, len(devices), after_end == "wrap", after_end == "hold", Path("positions.csv"))


@st.composite
def recordings(draw: st.DrawFn) -> list[list[Row]]:
    devices = []
    for _ in range(draw(st.integers(1, 4))):
        times = draw(st.lists(st.integers(0, 200), min_size=1, max_size=6, unique=True).map(sorted))
        coordinates = st.floats(-500.0, 500.0)
        devices.append([(float(t_s), draw(coordinates), draw(coordinates)) for t_s in times])
    return devices


@given(recordings(), st.floats(0.0, 900.0), st.sampled_from(["wrap", "hold"]))
def test_a_device_is_where_its_rows_have_it(devices, t_s, after_end):
    last_s = max(rows[-1][0] for rows in devices)
    phase_s = t_s % last_s if after_end == "wrap" and last_s > 0 else t_s
    x_m, y_m = made(devices, after_end).positions(np.arange(len(devices)), t_s)
    for device, rows in enumerate(devices):
        times, xs, ys = zip(*rows, strict=True)
        # NumPy's interpolation holds the first and the last values outside.
        assert x_m[device] == pytest.approx(np.interp(phase_s, times, xs), abs=1e-6)
        assert y_m[device] == pytest.approx(np.interp(phase_s, times, ys), abs=1e-6)


@given(recordings(), st.floats(0.0, 700.0), st.floats(0.1, 500.0), st.sampled_from(["wrap", "hold"]))
def test_legs_follow_one_another_through_all_repetitions(devices, t_s, over_s, after_end):
    moving, ids = made(devices, after_end), np.arange(len(devices))[::-1]
    place, legs = moving.legs_until(ids, t_s, t_s + over_s)
    assert np.unique(place).tolist() == list(range(len(ids)))
    for at, device in enumerate(ids):
        own = legs.rows(np.flatnonzero(place == at))
        assert own.t0_s[0] <= t_s < own.t1_s[0]
        assert own.t0_s[-1] < t_s + over_s <= own.t1_s[-1]
        assert own.t1_s[:-1] == pytest.approx(own.t0_s[1:], abs=1e-9)
        for row, middle_s in enumerate((np.maximum(own.t0_s, t_s) + np.minimum(own.t1_s, t_s + over_s)) / 2):
            alone = moving.ahead(np.array([device]), float(middle_s))
            assert [column.item() for column in alone.columns] == [column[row] for column in own.columns]


def test_a_leg_that_begins_at_the_end_asked_for_is_left_out():
    moving = made([[(0.0, 0.0, 0.0), (5.0, 10.0, 0.0), (9.0, 0.0, 0.0)]], "hold")
    place, legs = moving.legs_until(np.array([0]), 1.0, 5.0)
    assert place.tolist() == [0]
    assert legs.t1_s.tolist() == [5.0]
    # The leg at the first instant is there in any case.
    assert moving.legs_until(np.array([0]), 5.0, 5.0)[1].t0_s.tolist() == [5.0]


def test_a_run_beyond_the_end_is_refused_but_may_be_planned():
    moving, ids = made([[(0.0, 0.0, 0.0), (10.0, 100.0, 0.0)], [(2.0, 5.0, 5.0)]], None), np.array([0, 1])
    assert moving.positions(ids, 10.0)[0].tolist() == [100.0, 5.0]
    assert moving.known_until_s == 10.0
    with in_one_line(r"^positions.csv: positions are known up to 10 s, but needed at 60 s; end the run earlier"):
        moving.need_known(60.0)
    assert moving.ahead(ids, 60.0).at(60.0)[0].tolist() == [100.0, 5.0]
    for held in (made([[(0.0, 0.0, 0.0), (10.0, 100.0, 0.0)]], "wrap"), made([[(0.0, 0.0, 0.0)]], "hold")):
        held.need_known(1e9)


def test_the_file_decides_where_it_ends_and_the_devices_of_the_run_where_the_map_ends(tmp_path):
    path = csv(tmp_path, "0,0,0,0\n0,4,8,-2\n1,0,500,0\n1,10,600,0\n")
    ground = Ground(1.0, np.zeros(1), np.zeros(1))
    moving = make_paths("recorded", {"file": str(path)}, ground, Streams(0))
    assert moving.positions(np.array([0]), 9.0)[0].tolist() == [8.0]
    assert tuple(moving.box) == (0.0, 8.0, -2.0, 0.0)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_in_any_order_and_other_columns(tmp_path, suffix):
    frame = pd.DataFrame(
        {"y_m": [0.5, 1.5, 2.5], "name": [7, 8, 9], "device": [1, 0, 0], "t_s": [0.0, 9.0, 3.0], "x_m": [1.0, 2.0, 3.0]}
    )
    path = tmp_path / f"positions{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    rows = read_positions(path)
    assert rows.device.tolist() == [0, 0, 1]
    assert rows.t_s.tolist() == [3.0, 9.0, 0.0]
    assert rows.x_m.tolist() == [3.0, 2.0, 1.0]
    assert rows.y_m.tolist() == [2.5, 1.5, 0.5]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "0,0,0,0\n0,5,1,1\n0,0,2,2\n",
            r"line 4: t_s: expected another time than in the device's other rows \(got 0\)",
        ),
        ("0,nan,0,0\n", r"line 2: t_s: expected a finite number of seconds, 0 or more"),
        ("0,0,0,0\n0,-1,0,0\n", r"line 3: t_s: expected a finite number of seconds, 0 or more \(got -1\)"),
        ("0,inf,0,0\n", r"line 2: t_s: expected a finite number of seconds"),
        ("0,0,nan,0\n", r"line 2: x_m: expected a number of metres from -1e\+07 to 1e\+07"),
        ("0,0,0,1e8\n", r"line 2: y_m: expected a number of metres from -1e\+07 to 1e\+07 \(got 1e8\)"),
        ("0,0,east,0\n", r"line 2: x_m: expected a number of metres .* \(got east\)"),
        ("0.5,0,0,0\n", r"line 2: device: expected a whole number, 0 or more \(got 0.5\)"),
        ("-1,0,0,0\n", r"line 2: device: expected a whole number, 0 or more"),
        ("car7,0,0,0\n", r"line 2: device: expected a whole number, 0 or more \(got car7\)"),
        ("0,0,0,0\n2,0,0,0\n", "device 1 has no rows; expected all devices from 0 to 2"),
        ("", "holds no rows; expected device, t_s, x_m, y_m"),
        ("0,0,0,0,9\n", r"line 2: expected 4 fields \(got 5\)"),
        ("0,0,0,0\n0,1,5\n", r"line 3: expected 4 fields \(got 3\)"),
    ],
)
def test_bad_rows_are_named_by_file_line_and_column(tmp_path, body, message):
    path = csv(tmp_path, body)
    with in_one_line(f"^{path}: {message}"):
        read_positions(path)


def test_a_row_of_parquet_is_named_by_its_number(tmp_path):
    path = tmp_path / "positions.parquet"
    pd.DataFrame({"device": [0, 0], "t_s": [0.0, 1.0], "x_m": [0.0, np.nan], "y_m": [0.0, 0.0]}).to_parquet(path)
    with in_one_line(f"^{path}: row 2: x_m: expected a number of metres"):
        read_positions(path)


def recorded(count: int = 1, **options: object) -> Paths:
    return make_paths("recorded", options, Ground(1.0, np.zeros(count), np.zeros(count)), Streams(0))


def test_bad_files_and_options_are_refused_in_a_line(tmp_path):
    path = str(csv(tmp_path, "0,0,0,0\n"))
    with in_one_line(f"^{path}: is a recording of 1 devices, but devices.count is 3; lower"):
        recorded(3, file=path)
    with in_one_line(r"^mobility\.file: no file 'nowhere'; give a path"):
        recorded(file="nowhere")
    with in_one_line("column 'x_m' is missing; expected device, t_s, x_m, y_m; found device, t_s, x"):
        recorded(file=str(csv(tmp_path, "0,0,0\n", "device,t_s,x\n")))
    with in_one_line(r"^model 'recorded': mobility.after_end: input should be 'wrap' or 'hold'"):
        recorded(file=path, after_end="stop")
    with in_one_line(r"^model 'recorded': mobility.file: field required"):
        recorded()
