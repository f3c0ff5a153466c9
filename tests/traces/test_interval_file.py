import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_rows import rows
from refusals import in_one_line

from edgesim.base.device_keys import texts
from edgesim.traces.interval_file import read_intervals, write_intervals
from edgesim.traces.intervals import Intervals

README = Path(__file__).parents[2] / "docs" / "recordings.md"
HEAD = "device,start_s,end_s\n"


def csv(folder: Path, text: str) -> Path:
    path = folder / "week.csv"
    path.write_text(text, errors="surrogateescape")
    return path


def test_the_example_in_the_readme_is_read(tmp_path):
    example = re.search(r"```csv\n(.*?)```", README.read_text(), re.DOTALL)
    assert example is not None
    intervals = read_intervals(csv(tmp_path, example[1]))
    assert rows(intervals) == [(0, 0.0, 28800.0), (0, 64800.0, 86400.0), (2, 3600.0, 7200.0)]


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (HEAD + "2,1,2\n0,1.5,3\n2,4,5.25\n0,8,9\n", [(0, 1.5, 3), (0, 8, 9), (2, 1, 2), (2, 4, 5.25)]),
        # Touching intervals of one device are merged, and of two are not.
        (HEAD + "0,0,1\n0,1,2\n0,2,3\n0,3.5,4\n1,4,5\n", [(0, 0, 3), (0, 3.5, 4), (1, 4, 5)]),
        # Blank lines, other columns and their order do not matter.
        ("end_s, model, start_s, device\n\n2, phone, 1, 0\n\n", [(0, 1, 2)]),
    ],
)
def test_rows_are_put_in_order_by_device_and_time(text, found, tmp_path):
    assert rows(read_intervals(csv(tmp_path, text))) == found


def test_ids_may_count_from_0_or_from_1_in_a_column_device_id(tmp_path):
    head = "device_id,start_s,end_s\n"
    assert rows(read_intervals(csv(tmp_path, head + "2,1,2\n0,3,4\n"))) == [(0, 3.0, 4.0), (2, 1.0, 2.0)]
    from_one = read_intervals(csv(tmp_path, head + "2,1,2\n1,3,4\n"))
    assert (rows(from_one), from_one.device_count) == ([(0, 3.0, 4.0), (1, 1.0, 2.0)], 2)
    # An id is what its device is called; a number is not.
    assert from_one.keys.tolist() == ["1", "2"]
    assert read_intervals(csv(tmp_path, head + "2,1,2\n0,3,4\n")).keys.tolist() == ["0", "1", "2"]
    assert read_intervals(csv(tmp_path, HEAD + "0,1,2\n")).keys is None
    both = read_intervals(csv(tmp_path, "device,device_id,start_s,end_s\n1,7,3,4\n"))
    assert rows(both) == [(1, 3.0, 4.0)]
    with in_one_line(r"line 3: device_id: expected a finite number \(got x\)"):
        read_intervals(csv(tmp_path, head + "0,1,2\nx,1,2\n"))


def test_numbers_keep_their_last_bit(tmp_path):
    values = np.sort(np.random.default_rng(0).uniform(0, 1e6, 2000))
    frame = pd.DataFrame({"device": 0, "start_s": values[::2], "end_s": values[1::2]})
    frame.to_csv(tmp_path / "week.csv", index=False)
    frame.to_parquet(tmp_path / "week.parquet")
    for name in ("week.csv", "week.parquet"):
        intervals = read_intervals(tmp_path / name)
        assert intervals.start_s.tolist() == values[::2].tolist()
        assert intervals.end_s.tolist() == values[1::2].tolist()


LENGTHS = "device,start_s,end_s,length_s\n"


def test_a_recording_is_as_long_as_the_file_says_or_else_as_its_last_end(tmp_path):
    own = csv(tmp_path, LENGTHS + "0,1,2,10\n2,1,2,30\n2,5,6,30\n")
    assert read_intervals(own).length_s.tolist() == [10.0, 30.0, 30.0]
    assert read_intervals(own, 99.0).length_s.tolist() == [10.0, 30.0, 30.0]
    # Who is never there was recorded for as long as the longest.
    assert read_intervals(csv(tmp_path, LENGTHS + "0,1,2,10\n2,1,2,30\n3,1,2,20\n")).length_s.tolist() == [
        10,
        30,
        30,
        20,
    ]
    without = csv(tmp_path, HEAD + "0,1,2\n1,5,6\n")
    assert read_intervals(without).length_s.tolist() == [6.0, 6.0]
    assert read_intervals(without, 7.5).length_s.tolist() == [7.5, 7.5]


FRAME = pd.DataFrame({"device": [0, 0, 1], "start_s": [0.0, 2.0, None], "end_s": [1.0, 3.0, 4.0]})
NOISE, GOOD = bytes(range(256)) * 4, HEAD.encode() + b"0,1,2\n"


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("name", "content", "length_s", "said"),
    [
        ("week.parquet", FRAME, None, "row 3: start_s: expected a finite number (got nan)"),
        ("week.parquet", FRAME[["device", "start_s"]], None, "column 'end_s' is missing"),
        ("week.parquet", FRAME.assign(start_s=pd.Timestamp(0)), None, "column 'start_s': expected numbers, found"),
        ("week.parquet", NOISE, None, "week.parquet: "),
        ("week.csv", NOISE, None, "week.csv: "),
        ("week.csv", None, None, "not a readable csv file: "),
        ("week.json", None, None, "expected a file that ends in .csv or .parquet"),
        ("week.csv", GOOD, np.inf, "length_s: expected seconds above 0, up to 3.2e+09"),
        ("week.csv", GOOD, 1.5, "line 2: end_s: expected an instant within the length given"),
    ],
)
def test_a_file_that_holds_no_intervals_is_one_line(name, content, length_s, said, tmp_path):
    if isinstance(content, pd.DataFrame):
        content.to_parquet(tmp_path / name)
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    with in_one_line(re.escape(said)):
        read_intervals(tmp_path / name, length_s)


@st.composite
def recordings(draw: st.DrawFn) -> Intervals:
    """Some devices, of which at least one is ever there, each recorded for a length of its own."""
    there = draw(st.lists(st.booleans(), min_size=1, max_size=6).filter(any))
    devices = np.flatnonzero(there)
    edges = [sorted(draw(st.sets(st.floats(0, 100), min_size=4, max_size=4))) for _ in devices]
    start_s, end_s = np.array(edges)[:, ::2].ravel(), np.array(edges)[:, 1::2].ravel()
    length = st.sampled_from([100.0, 101.5, 250.25])
    lengths_s = np.array([draw(length) for _ in there])
    unobserved_s = np.array([draw(st.floats(0, 100)) for _ in there]) if draw(st.booleans()) else None
    counts_as = draw(st.sampled_from(["absent", "present"])) if unobserved_s is not None else "absent"
    keys = texts(draw(st.sets(st.text(), min_size=len(there), max_size=len(there)))) if draw(st.booleans()) else None
    models = texts(draw(st.text()) for _ in there) if draw(st.booleans()) else None
    rows = np.repeat(devices, 2), start_s, end_s
    return Intervals(*rows, lengths_s, "made", unobserved_s, counts_as, keys, models)


@settings(max_examples=10)
@given(recordings())
def test_every_recording_is_read_back_as_it_was_written(tmp_path_factory, made):
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    write_intervals(path, made)
    found = read_intervals(path)
    assert rows(found) == rows(made)
    assert found.unobserved_as == made.unobserved_as
    for name in ("length_s", "unobserved_s", "keys", "models"):
        left, right = getattr(found, name), getattr(made, name)
        assert (left is None) == (right is None), name
        assert left is None or left.tolist() == right.tolist(), name


def test_a_file_that_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path):
    (tmp_path / "taken.parquet").mkdir()
    made = Intervals(np.array([0]), np.array([1.0]), np.array([2.0]), np.array([3.0]))
    with in_one_line(r"taken\.parquet: cannot be written"):
        write_intervals(tmp_path / "taken.parquet", made)
    with in_one_line(r"week\.csv: expected a name that ends in \.parquet"):
        write_intervals(tmp_path / "week.csv", made)
    assert [file.name for file in tmp_path.iterdir()] == ["taken.parquet"]
