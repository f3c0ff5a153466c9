"""What Parquet files note beside their tables: whatever stands there, one line that names file and note."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.devices.profile import read_profile
from edgesim.radio.link_file import read_links
from edgesim.traces.interval_file import read_intervals

ROWS = {"device": [0, 1], "start_s": [0.0, 5.0], "end_s": [10.0, 20.0]}
DEEP = "[" * 100_000


def parquet(folder: Path, columns: dict[str, object], notes: dict[bytes, bytes] | None = None) -> Path:
    path = folder / "week.parquet"
    table = pa.table(columns)
    pq.write_table(
        table.replace_schema_metadata({b"edgesim." + key: note for key, note in (notes or {}).items()}), path
    )
    return path


def line(read, path: Path) -> str:
    with pytest.raises(EdgesimError) as caught:
        read(path)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text.removeprefix(f"{path}: ")


def test_good_notes_are_read(tmp_path):
    notes = {
        b"devices": b"3", b"length_s": b"[10, 20, 30]", b"unobserved_s": b"[0, 5, 30]", b"unobserved_as": b"present",
        b"keys": b'["a", "b", "c"]', b"models": b'["x", "", "x"]', b"of_a_later_version": b"?",
    }  # fmt: skip
    read = read_intervals(parquet(tmp_path, ROWS, notes))
    assert (read.device_count, read.length_s.tolist()) == (3, [20.0, 20.0, 30.0])
    assert (read.unobserved_s.tolist(), read.unobserved_as) == ([0.0, 5.0, 30.0], "present")
    assert (read.keys.tolist(), read.models.tolist()) == (["a", "b", "c"], ["x", "", "x"])


COUNT = "expected a whole number from 1 to 10000000"
SECONDS = "expected a list of seconds above 0, up to 3.2e+09, one for each device"
UNSEEN = "expected a list of seconds, 0 or more, up to 3.2e+09, one for each device"
TEXTS = "expected a list of texts, one for each device"
BAD_NOTES = [
    ("devices", "", f"{COUNT} (is not JSON"),
    ("devices", "-3", f"{COUNT} (got -3)"),
    ("devices", "2.5", f"{COUNT} (got 2.5)"),
    ("devices", "true", f"{COUNT} (got True)"),
    ("devices", '"2"', f"{COUNT} (got '2')"),
    ("devices", "1" + "0" * 18, f"{COUNT} (got 1000000000000000000)"),
    ("devices", "1" + "0" * 9000, COUNT),
    ("devices", DEEP, f"{COUNT} (is not JSON"),
    ("devices", "1", "expected at least 2, since the rows have device 1 (got 1)"),
    ("length_s", "[20, 20", f"{SECONDS} (is not JSON"),
    ("length_s", "null", f"{SECONDS} (got None)"),
    ("length_s", "{}", f"{SECONDS} (got {{}})"),
    ("length_s", "[20, null]", f"{SECONDS} (got None for device 1)"),
    ("length_s", '[20, "20"]', f"{SECONDS} (got '20' for device 1)"),
    ("length_s", "[0, 20]", f"{SECONDS} (got 0 for device 0)"),
    ("length_s", "[20, Infinity]", f"{SECONDS} (got inf for device 1)"),
    ("length_s", "[20, NaN]", f"{SECONDS} (got nan for device 1)"),
    ("length_s", "[20, [20]]", f"{SECONDS} (got [20] for device 1)"),
    ("length_s", "[20, 20, 20]", "expected 2 values, one for each device (got 3)"),
    ("unobserved_s", "[1]", "expected 2 values, one for each device (got 1)"),
    ("unobserved_s", "[-1, 1]", f"{UNSEEN} (got -1 for device 0)"),
    ("unobserved_s", "[1, 30]", "expected at most the device's length_s, 20 s (got 30 for device 1)"),
    ("unobserved_as", "maybe", "expected absent or present (got 'maybe')"),
    ("keys", "null", f"{TEXTS} (got None)"),
    ("keys", "[1, 2]", f"{TEXTS} (got 1 for device 0)"),
    ("keys", '"ab"', f"{TEXTS} (got 'ab')"),
    ("keys", '["a"]', "expected 2 values, one for each device (got 1)"),
    ("keys", '["a", "a"]', "expected each key once (got 'a' twice)"),
    ("models", '["a", null]', f"{TEXTS} (got None for device 1)"),
    ("models", '[["a"], "b"]', f"{TEXTS} (got ['a'] for device 0)"),
    ("models", '["a", "b", "c"]', "expected 2 values, one for each device (got 3)"),
]


@pytest.mark.parametrize(("name", "note", "said"), BAD_NOTES, ids=lambda value: str(value)[:30])
def test_a_bad_note_of_a_availability_file_is_one_line(name, note, said, tmp_path):
    path = parquet(tmp_path, ROWS, {name.encode(): note.encode()})
    assert line(read_intervals, path).startswith(f"metadata edgesim.{name}: {said}")


def test_a_long_note_is_cut_in_the_message(tmp_path):
    notes = {b"keys": json.dumps({"a" * 10_000: ["b" * 10_000] * 20}).encode()}
    assert line(read_intervals, parquet(tmp_path, ROWS, notes)).startswith(f"metadata edgesim.keys: {TEXTS} (got {{")


@pytest.mark.parametrize("note", [{b"keys": b"\xff"}, {b"\xff": b"1"}])
def test_notes_that_are_no_text_are_one_line(note, tmp_path):
    assert line(read_intervals, parquet(tmp_path, ROWS, note)) == "metadata edgesim.*: expected UTF-8 text"


@pytest.mark.parametrize("note", ["many", "-1", "null", "1.5", "1" + "0" * 20, DEEP, "3"])
def test_a_bad_note_of_a_profile_is_one_line(note, tmp_path):
    path = parquet(tmp_path, {"device": [0, 1], "s_per_sample": [1.0, 2.0]}, {b"guessed": note.encode()})
    assert line(read_profile, path).startswith("metadata edgesim.guessed: expected ")


STRANGE = [pa.array([["a"], ["b"]]), pa.array([{"a": 1}, {"a": 2}]), pa.array([b"a", b"\xff"]), pa.array([True, False])]


@pytest.mark.parametrize("keys", STRANGE, ids=["list", "struct", "bytes", "booleans"])
def test_keys_that_are_no_text_are_one_line(keys, tmp_path):
    links = parquet(tmp_path, {"device": [0, 1], "t_s": [0.0, 0.0], "bps": [1e6, 1e6], "key": keys})
    assert line(read_links, links).startswith("column 'key': expected text, found ")
    profile = parquet(tmp_path, {"device": [0, 1], "s_per_sample": [1.0, 2.0], "key": keys})
    assert line(read_profile, profile).startswith("column 'key': expected text, found ")
