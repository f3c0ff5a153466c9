"""Readers of recorded positions: SUMO's FCD output, GPX and BonnMotion; their stays; files that are broken."""

import gzip
import math
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import in_one_line
from typed_commands import edgesim

from edgesim.base import memory
from edgesim.base.errors import EdgesimError
from edgesim.mobility.models.recorded import Recorded
from edgesim.mobility.paths import Ground
from edgesim.mobility.position_file import PositionRows, read_positions
from edgesim.streams import Streams
from edgesim.traces.convert import convert
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.readers import position_log, read_recording

Row = tuple[str, float, float, float]
"""Id, seconds, x and y."""

EARTH_M = 6_371_000.0


def fcd(rows: list[Row], begin_s: float = 0.0) -> str:
    """SUMO's XML of rows, with an empty time step first."""
    steps = [f'<timestep time="{begin_s}"/>']
    for t_s in sorted({row[1] for row in rows}):
        inner = "".join(f'<vehicle id="{key}" x="{x}" y="{y}" speed="1"/>' for key, at_s, x, y in rows if at_s == t_s)
        steps.append(f'<timestep time="{begin_s + t_s}">\n{inner}</timestep>')
    return "<!-- SUMO -->\n<fcd-export>\n" + "\n".join(steps) + "\n</fcd-export>\n"


def fcd_csv(rows: list[Row], begin_s: float = 0.0) -> str:
    """SUMO's CSV of rows, with an empty time step first."""
    lines = ["timestep_time;vehicle_angle;vehicle_id;vehicle_x;vehicle_y", f"{begin_s};;;;"]
    lines += [f"{begin_s + t_s};90;{key};{x};{y}" for key, t_s, x, y in sorted(rows, key=lambda row: row[1])]
    return "\n".join(lines) + "\n"


def movements(rows: list[Row]) -> str:
    """BonnMotion's text of rows, whose ids are in order."""
    keys = list(dict.fromkeys(row[0] for row in rows))
    lines = [" ".join(f"{t_s} {x} {y}" for name, t_s, x, y in rows if name == key) for key in keys]
    return "\n".join(lines) + "\n"


def gpx(points: str) -> str:
    return f'<?xml version="1.0"?>\n<gpx xmlns="http://www.topografix.com/GPX/1/1">{points}</gpx>'


def track(*points: tuple[float, float, str]) -> str:
    """A track of latitudes, longitudes and times of the first of May."""
    return f"<trk><trkseg>{''.join(point(lat, lon, f'2026-05-01T{time}') for lat, lon, time in points)}</trkseg></trk>"


def point(lat: float, lon: float, time: str) -> str:
    return f'<trkpt lat="{lat}" lon="{lon}"><ele>3</ele><time>{time}</time></trkpt>'


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def rows_of(path: Path) -> list[tuple[int, float, float, float]]:
    found = read_recording(path)
    assert isinstance(found, PositionRows)
    return list(zip(*(column.tolist() for column in (found.device, found.t_s, found.x_m, found.y_m)), strict=True))


ROWS = [("b", 1.0, 10.5, -3.0), ("a", 1.0, 0.0, 7.25), ("b", 2.0, 11.5, -3.0), ("a", 4.5, 1.0, 1.0)]
READ = [(0, 1.0, 10.5, -3.0), (0, 2.0, 11.5, -3.0), (1, 1.0, 0.0, 7.25), (1, 4.5, 1.0, 1.0)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fcd.xml", fcd(ROWS, 100.0)),
        ("fcd.xml.gz", fcd(ROWS, 100.0)),
        ("fcd.csv", fcd_csv(ROWS, 100.0)),
        ("fcd.csv.gz", fcd_csv(ROWS, 100.0)),
        ("nodes.movements", movements(ROWS)),
        ("nodes.movements.gz", movements(ROWS)),
        ("rows.csv", "device,t_s,x_m,y_m\n" + "\n".join(",".join(map(str, row)) for row in READ)),
    ],
)
def test_all_formats_of_positions_are_detected_and_read_alike(name, text, tmp_path):
    path, out = put(tmp_path, name, text), tmp_path / "out.parquet"
    assert rows_of(path) == READ
    convert(path, out)
    assert rows_of(out) == READ
    keys = read_positions(out).keys
    assert (None if keys is None else keys.tolist()) == (["b", "a"] if "fcd" in name else None)


numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), numbers, numbers), min_size=1, max_size=20))
@settings(max_examples=25)
def test_what_is_written_in_any_format_is_read(tmp_path_factory, drawn):
    once = {(key, t_s): (x, y) for key, t_s, x, y in drawn}
    rows = sorted((key, float(t_s), x, y) for (key, t_s), (x, y) in once.items())
    folder = tmp_path_factory.mktemp("rows")
    found = [rows_of(put(folder, "n.movements", movements(rows)))]
    for name, text in (("f.xml", fcd(rows, 3.0)), ("f.csv", fcd_csv(rows, 3.0))):
        read = read_recording(put(folder, name, text))
        by_key = {key: device for device, key in enumerate(sorted(set(read.keys)))}
        order = np.lexsort((read.t_s, [by_key[read.keys[device]] for device in read.device]))
        columns = (np.array([by_key[read.keys[k]] for k in read.device]), read.t_s, read.x_m, read.y_m)
        found.append(list(zip(*(column[order].tolist() for column in columns), strict=True)))
    number = {key: device for device, key in enumerate(sorted({row[0] for row in rows}))}
    for read in found:
        assert read == [(number[key], t_s, x, y) for key, t_s, x, y in rows]


def test_persons_are_read_beside_vehicles_and_containers_are_not(tmp_path):
    text = (
        '<fcd-export><timestep time="5"><vehicle id="1" x="1" y="2"/><person id="1" x="3" y="4"/>'
        '<container id="1" x="5" y="6"/></timestep></fcd-export>'
    )
    found = read_recording(put(tmp_path, "fcd.xml", text))
    assert (found.keys.tolist(), found.x_m.tolist(), found.t_s.tolist()) == (["1", "person:1"], [1, 3], [0, 0])
    table = "timestep_time;person_id;person_x;person_y;vehicle_id;vehicle_x;vehicle_y\n5;1;3;4;;;\n5;;;;1;1;2\n"
    found = read_recording(put(tmp_path, "fcd.csv", table))
    assert (found.keys.tolist(), found.x_m.tolist()) == (["person:1", "1"], [3, 1])


def test_gpx_tracks_lie_on_a_plane_around_their_mean(tmp_path):
    """Mean latitude 60.5 degrees, mean longitude 24.75: a degree of latitude is R pi / 180."""
    points = "<wpt lat='1' lon='1'/>" + track((60.0, 25.0, "12:00:10.500Z"), (60.5, 25.0, "12:00:11.5Z"))
    points = points.replace("</trk>", "") + track((60.5, 24.0, "14:00:21.5+02:00")).replace("<trk>", "")
    points += track((61.0, 25.0, "12:00:00"))
    degree_m = EARTH_M * math.pi / 180
    across_m = degree_m * math.cos(math.radians(60.5))
    expected = [
        (0, 10.5, 0.25 * across_m, -0.5 * degree_m),
        (0, 11.5, 0.25 * across_m, 0.0),
        (0, 21.5, -0.75 * across_m, 0.0),
        (1, 0.0, 0.25 * across_m, 0.5 * degree_m),
    ]
    for prefix in ("", "g:"):
        text = re.sub("<(/?)(trk|gpx|time)", rf"<\1{prefix}\2", gpx(points))
        assert np.array(rows_of(put(tmp_path, "a.gpx", text))) == pytest.approx(np.array(expected), abs=1e-6)


def test_several_gpx_files_lie_on_one_plane_and_count_from_the_earliest_point(tmp_path):
    """As one file of all their tracks; a fault names its own file, and nothing is written."""
    tracks = [track((60.0, 25.0, "12:00:10Z")), track((60.2, 25.0, "12:00:05Z")), track((60.7, 25.0, "12:00:30Z"))]
    whole = rows_of(put(tmp_path, "whole.gpx", gpx("".join(tracks))))
    files = [put(tmp_path, f"{name}.gpx", gpx(text)) for name, text in (("a", tracks[0]), ("b", "".join(tracks[1:])))]
    out = tmp_path / "out.parquet"
    assert edgesim("trace", "convert", *files, out)[0] == 0
    read = read_positions(out)
    columns = read.device, read.t_s, read.x_m, read.y_m
    np.testing.assert_allclose(np.column_stack(columns), np.array(whole), atol=1e-6)
    bad = put(tmp_path, "c.gpx", gpx("<trk><trkseg><trkpt lat='1' lon='1'></trkpt></trkseg></trk>"))
    with pytest.raises(EdgesimError, match=rf"^{bad}: line \d+: trkpt: expected a time"):
        convert(files[0], tmp_path / "no.parquet", more=[bad])
    assert not list(tmp_path.glob("no*"))


def test_a_track_across_the_date_line_is_no_longer_than_elsewhere(tmp_path):
    ways = []
    for first, second in ((179.999, -179.999), (10.0, 10.002)):
        text = gpx(track((0, first, "12:00:00Z"), (0, second, "12:00:01Z")))
        ways.append(read_recording(put(tmp_path, "a.gpx", text)).x_m)
    assert ways[0] == pytest.approx(ways[1], abs=1e-6)
    assert np.diff(ways[0]).item() == pytest.approx(0.002 * EARTH_M * math.pi / 180)


def test_of_points_at_one_time_the_first_counts_and_what_lies_in_extensions_is_no_time(tmp_path):
    times = ("12:00:00", "12:00:01", "12:00:01", "12:00:02")
    text = gpx(track(*((0, k / 1000, f"{time}Z") for k, time in enumerate(times))))
    text = text.replace("<ele>3</ele>", "<extensions><time>never</time></extensions>")
    found = read_recording(put(tmp_path, "a.gpx", text))
    assert found.t_s.tolist() == [0, 1, 2]
    assert np.diff(found.x_m) == pytest.approx(np.array([1, 2]) * EARTH_M * math.pi / 180_000)


def test_a_gap_ends_a_stay_and_one_row_is_none(tmp_path):
    rows = [("a", t_s, 0.0, 0.0) for t_s in (0.0, 60.0, 121.0, 130.0)] + [("b", 50.0, 0.0, 0.0)]
    rows += [("c", 199.0, 0.0, 0.0), ("c", 200.0, 1.0, 0.0)]
    path = put(tmp_path, "fcd.xml", fcd(rows))
    out, stays = tmp_path / "out.parquet", tmp_path / "stays.parquet"
    convert(path, out, stays=stays)
    found = read_intervals(stays)
    assert list(zip(found.device, found.start_s, found.end_s, strict=True)) == [
        (0, 0, 60),
        (0, 121, 130),
        (2, 199, 200),
    ]
    assert (found.keys.tolist(), found.length_s.tolist()) == (["a", "b", "c"], [200, 200, 200])
    convert(path, out, stays=stays, gap_s=61.0)
    assert read_intervals(stays).end_s.tolist() == [130, 200]
    with pytest.raises(EdgesimError, match=r"^gap_s: no device of .*fcd\.xml has two rows at most 0\.5 s apart"):
        convert(path, tmp_path / "no.parquet", stays=tmp_path / "no-stays.parquet", gap_s=0.5)
    for gap_s in (0.01, 2e6, math.nan):
        with pytest.raises(EdgesimError, match=r"^gap_s: expected seconds from 0\.1 to 1e\+06"):
            convert(path, tmp_path / "no.parquet", stays=stays, gap_s=gap_s)
    no = tmp_path / "no.parquet"
    for same, message in (({"gap_s": 5.0}, "^gap_s: is for"), ({"stays": no}, "^stays: expected another")):
        with pytest.raises(EdgesimError, match=message):
            convert(path, no, **same)
    (tmp_path / "links.csv").write_text("t_s,bps\n0,5\n")
    with pytest.raises(EdgesimError, match=r"^stays, gap_s: are for recorded positions"):
        convert(tmp_path / "links.csv", tmp_path / "no.parquet", stays=stays)
    assert not list(tmp_path.glob("no*"))


TRACK = gpx(f"\n<trk><trkseg>\n{point(0, 0, '2026-05-01T12:00:00Z')}\n{{}}</trkseg></trk>")
NUMBER = "expected a number from -1e+07 to 1e+07"
STEPS, TABLE, WORDS = fcd(ROWS), fcd_csv(ROWS), "0 1 2 5 1 2\n"


def second(lat: float, lon: float, time: str) -> str:
    """A track whose second point is in line 5."""
    return TRACK.format(point(lat, lon, time))


SUMO_XML = [
    (STEPS[:-30], "line 9: not whole XML: unclosed token"),
    (STEPS.replace("</timestep>", "</timesteps>", 1), "line 5: not whole XML: mismatched tag"),
    (STEPS.replace('x="10.5"', 'x="nan"'), f"line 5: x: {NUMBER} (got nan)"),
    (STEPS.replace(' x="10.5"', ""), f"line 5: x: {NUMBER} (got nothing)"),
    (STEPS.replace('y="-3.0"', 'y="2e7"', 1), f"line 5: y: {NUMBER} (got 2e7)"),
    (STEPS.replace('id="b"', "", 1), "line 5: vehicle: expected an id"),
    (STEPS.replace('id="a"', 'id="b"', 1), "line 5: expected a time after 1 s in the row before of 'b' (got 1)"),
    (STEPS.replace('time="2.0"', 'time="0.5"'), "line 6: time: expected time steps in order of time (got 0.5 "),
    (STEPS.replace('time="2.0"', 'time="-2"'), "line 6: time: expected seconds, 0 to 3.2e+09 (got -2)"),
    (STEPS.replace('time="2.0"', ""), "line 6: time: expected a number from -3.2e+09 to 3.2e+09 (got nothing)"),
    ("<fcd-export/>", "holds no rows; expected vehicles or persons in time steps"),
    ('<!DOCTYPE a [\n<!ENTITY b "c">]>\n<fcd-export>&b;</fcd-export>', "line 1: expected no document type"),
    ("<fcd-export>\n" + "<a>" * 101, "line 2: expected elements at most 100 deep in one another"),
    ('<fcd-export>\n<a b="' + "x" * 2_000_000, "line 2: expected tags of at most 1,048,576 bytes"),
    ('<?xml version="1.0" encoding="wide"?><fcd-export/>', "line 1: "),
]
SUMO_TABLE = [
    (TABLE.replace("vehicle_x", "vehicle_z"), "line 1: column vehicle_x is missing; found timestep_time, "),
    ("timestep_time;edge_id\n", "line 1: column vehicle_id is missing"),
    (TABLE + "9;1;b\n", "line 7: expected 5 fields (got 3)"),
    (TABLE + "1;90;b;1;1\n", "line 7: time: expected time steps in order of time"),
    (TABLE + '9;1;"b;1;1\n', "line 7: not a row of a table"),
    (TABLE + "9" * 70_000, "line 7: expected lines of fewer than 65,536 bytes"),
]
GPX = [
    (TRACK.format("<trkpt lat='1' lon='0'><ele>3</ele></trkpt>"), "line 5: trkpt: expected a time"),
    (second(1, 0, "noon"), "line 5: time: expected a date and time such as 2026-05-01T12:00:00Z (got noon)"),
    (second(1, 0, "2026-05-01T11:59:59Z"), "line 5: expected a time after 0 s in the row before of 'track 1' (got"),
    (second(91, 0, "2026-05-01T12:00:01Z"), "line 5: lat: expected a number from -90 to 90 (got 91)"),
    (second(0, 179.5, "2026-05-01T12:00:01Z").replace('"179.5"', '"east"'), "line 5: lon: expected a number from"),
    (gpx("<rte><rtept lat='0' lon='0'/></rte>"), "holds no rows; expected points of tracks (trkpt)"),
    (second(0, 0, "1" * 200), "line 5: time: expected 100 characters at most"),
]
BONNMOTION = [
    (WORDS + "0 1 2 5 1\n", "line 2: expected t, x and y again and again (got 5 numbers)"),
    (WORDS + "0 1 2 3 x 2", f"line 2: x: {NUMBER} (got x)"),
    ("0 1 2 0 1 2\n", "line 1: expected a time after 0 s in the row before of '0' (got 0)"),
    ("-1 1 2\n", "line 1: t: expected seconds, 0 to 3.2e+09 (got -1)"),
    ("\n" + "1" * 200_000, "line 2: expected numbers (got 65,5"),
    ("\n", "holds no rows; expected lines of t, x and y"),
]
APART = "".join(track((0, lon, "12:00:00Z")) for lon in (0, 0, 0, 170))
GPX.append((gpx(APART), "expected tracks within 10,000 km of their mean"))
FORMATS = {"a.xml": SUMO_XML, "a.csv": SUMO_TABLE, "a.gpx": GPX, "a.movements": BONNMOTION}
BROKEN = [(name, text, said) for name, rows in FORMATS.items() for text, said in rows]


@pytest.mark.whole_family
@pytest.mark.parametrize(("name", "text", "said"), BROKEN, ids=[f"{name}-{said}" for name, _, said in BROKEN])
def test_a_broken_file_is_one_line_that_names_it_and_the_place_and_nothing_is_written(name, text, said, tmp_path):
    path = put(tmp_path, name, text)
    with in_one_line("^" + re.escape(f"{path}: {said}")):
        convert(path, tmp_path / "out.parquet")
    assert sorted(tmp_path.iterdir()) == [path]


def test_half_a_packed_file_and_a_text_that_is_none_are_one_line(tmp_path):
    path = put(tmp_path, "a.xml.gz", fcd(ROWS))
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(EdgesimError, match=rf"^{path}: is not a whole gzip file: "):
        read_recording(path)
    table = tmp_path / "a.csv"
    table.write_bytes(fcd_csv(ROWS).encode() + b"9;1;\xff;1;1\n")
    with pytest.raises(EdgesimError, match=rf"^{table}: (line 7: expected text in UTF-8|not a readable)"):
        read_recording(table, "sumo")


def test_a_file_of_more_rows_than_memory_holds_is_one_line_with_the_line(tmp_path, monkeypatch):
    path = put(tmp_path, "a.movements.gz", " ".join(f"{k} 0 0" for k in range(50)) + "\n")
    out = tmp_path / "rows.parquet"
    convert(path, out)
    monkeypatch.setattr(position_log, "_CHECK_EVERY", 10)
    monkeypatch.setattr(memory, "free_bytes", lambda: 1_000)
    with pytest.raises(EdgesimError, match=rf"^{path}: line 1: what is read up to here: needs 1\.5e-06 GB of memory"):
        read_recording(path)
    with pytest.raises(EdgesimError, match=rf"^{out}: row 50: needs 1\.6e-06 GB of memory"):
        read_recording(out)


def test_memory_does_not_grow_with_an_xml_that_holds_no_rows(tmp_path):
    """10 MB of foreign elements, beside 3 MB."""
    path = tmp_path / "a.xml.gz"
    filler = f'<other a="b">{1_000 * "x"}</other>\n' * 10_000
    path.write_bytes(gzip.compress(fcd(ROWS).replace("<timestep", filler + "<timestep", 1).encode(), 1))
    tracemalloc.start()
    try:
        read_recording(path)
        assert tracemalloc.get_traced_memory()[1] < 3e6
    finally:
        tracemalloc.stop()


def sumo_home() -> Path:
    """Folder of SUMO's programs and tools; skips the test where SUMO is missing.

    ``pip install eclipse-sumo`` in any environment whose ``bin`` is on PATH, or beside edgesim, or SUMO_HOME.
    """
    beside = Path(shutil.which("sumo") or sys.executable).parents[1]
    homes = [
        Path(os.environ.get("SUMO_HOME", "-")),
        *beside.glob("lib/python3*/site-packages/sumo"),
        beside / "share/sumo",
    ]
    home = next((at for at in homes if (at / "tools").is_dir()), None)
    if home is None:
        pytest.skip("SUMO is not installed: pip install eclipse-sumo, and its bin on PATH")
    return home


@pytest.mark.slow
def test_a_drive_of_sumo_is_converted_and_replayed(tmp_path):
    """The demand of an intersection in Braunschweig that SUMO ships; `sumo_home` says how to install it."""
    home = sumo_home()
    own, demo = home / "bin" / "sumo", home / "tools" / "game" / "fokr_bs_demo"
    command = [own if own.exists() else "sumo", "-n", "fokr_bs.net.xml.gz", "-r", "15_16_veh.trips.xml.gz", "-a"]
    command += ["vtypes_default.add.xml", "--begin", "53990", "--end", "54590", "--fcd-output"]
    for name in ("fcd.xml", "fcd.csv"):
        environment = os.environ | {"SUMO_HOME": str(home)}
        subprocess.run([*command, tmp_path / name], cwd=demo, env=environment, check=True, capture_output=True)
    out, stays = tmp_path / "drive.parquet", tmp_path / "stays.parquet"
    found = convert(tmp_path / "fcd.xml", out, stays=stays)
    assert rows_of(tmp_path / "fcd.csv") == rows_of(out)
    assert 14_000 < len(found.device) < 14_300
    periods = read_intervals(stays)
    assert (periods.end_s - periods.start_s).mean() == pytest.approx(37.8, abs=0.2)
    assert (np.ptp(found.x_m), np.ptp(found.y_m)) == pytest.approx((246, 194), abs=2)
    count = found.device_count
    moving = Recorded(file=str(out), after_end="hold").make(Ground(250.0, *np.zeros((2, count))), Streams(0))
    for row in range(0, len(found.device), 997):
        place = moving.positions(found.device[[row]], found.t_s[row])
        assert np.array(place).ravel() == pytest.approx([found.x_m[row], found.y_m[row]], abs=1e-9)
