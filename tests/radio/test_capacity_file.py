import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import in_one_line

from edgesim.radio.capacity_sample import ROWS, sample_capacity_csv
from edgesim.radio.environment import RecordedEnvironment, load_environment

CHANNELS = Path(__file__).parents[2] / "channels"
HEAD = "t_s,bps\n"
KEYS = 'file = "link.csv"\nend_s = 10.0\nafter_end = "wrap"\n'


def environment(folder: Path, keys: str = KEYS) -> Path:
    path = folder / "link.toml"
    path.write_text(f'name = "link"\nsource = "made for a test"\n[capacity]\n{keys}')
    return path


def read(path: Path) -> RecordedEnvironment:
    recorded = load_environment(str(path))
    assert isinstance(recorded, RecordedEnvironment)
    return recorded


def test_rows_keep_their_times_and_capacities(tmp_path):
    (tmp_path / "link.csv").write_text("bps, t_s, remark\n5e6, 0, a\n\n0, 2.5, b\n")
    capacity = read(environment(tmp_path)).capacity
    assert (capacity.t_s.tolist(), capacity.bps.tolist()) == ([0.0, 2.5], [5e6, 0.0])
    assert (capacity.until_s[0], capacity.wraps) == (10.0, True)
    assert capacity.bits_between(0, 0.0, 20.0) == 2 * 2.5 * 5e6


def test_parquet_gives_what_csv_gives(tmp_path):
    frame = pd.DataFrame({"t_s": [0, 3], "bps": [1e6, 2.5e6]})
    frame.to_csv(tmp_path / "link.csv", index=False)
    frame.to_parquet(tmp_path / "link.parquet")
    text = read(environment(tmp_path)).capacity
    binary = read(environment(tmp_path, KEYS.replace("csv", "parquet"))).capacity
    assert (text.t_s.tolist(), text.bps.tolist()) == (binary.t_s.tolist(), binary.bps.tolist())


def test_the_last_row_may_hold_for_ever_or_end_unknown(tmp_path):
    (tmp_path / "link.csv").write_text(HEAD + "0,1e6\n")
    held = read(environment(tmp_path, 'file = "link.csv"\nafter_end = "hold"\n')).capacity
    assert (held.until_s[0], held.wraps) == (np.inf, False)
    once = read(environment(tmp_path, 'file = "link.csv"\nend_s = 4.0\n')).capacity
    assert (once.until_s[0], once.wraps) == (4.0, False)


def test_the_shipped_table_is_the_generated_one():
    assert (CHANNELS / "recorded-capacity.csv").read_text() == sample_capacity_csv()


def test_the_shipped_table_has_the_stated_process():
    # ln(bps / 20 Mbit/s) is AR(1), correlation 0.95, deviation 0.5, but for the two outages.
    capacity = read(CHANNELS / "recorded-capacity.toml").capacity
    assert (len(capacity.t_s), np.count_nonzero(capacity.bps == 0)) == (ROWS, 13)
    log_ratio = np.log(capacity.bps[160:420] / 20e6)
    innovation = log_ratio[1:] - 0.95 * log_ratio[:-1]
    # The innovation's deviation is 0.5 sqrt(1 - 0.95^2) = 0.156, known to 1 / sqrt(2 n) = 4.4 %.
    assert innovation.std() == pytest.approx(0.156, rel=4 * 0.044)
    assert abs(innovation.mean()) < 4 * 0.156 / np.sqrt(len(innovation))


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t_s,mbps\n0,5\n", "column 'bps' is missing; expected t_s, bps; found t_s, mbps"),
        (HEAD, "holds no rows"),
        ("", "not a readable csv file"),
        (HEAD + "0,5,6\n", "line 2: expected 2 fields (got 3)"),
        (HEAD + "0,5\n1,fast\n", "line 3: bps: expected a finite number (got fast)"),
        (HEAD + "0,5\n\n2,inf\n", "line 4: bps: expected a finite number (got inf)"),
        (HEAD + "0,5\n,6\n", "line 3: t_s: expected a finite number (got nan)"),
        (HEAD + "0,5\n1,-5\n", "line 3: bps: expected bit/s, 0 or more (got -5)"),
        (HEAD + "3,5\n4,5\n", "line 2: t_s: expected 0 in the first row; count the times from there (got 3)"),
        (HEAD + "0,5\n2,5\n2,6\n", "line 4: t_s: expected a later time than in the row before (got 2)"),
        (HEAD + "0,0\n1,0\n", "line 2: bps: expected at least one row above 0"),
    ],
)
def test_a_bad_table_is_refused_in_one_line_that_names_file_line_and_column(text, said, tmp_path):
    path = tmp_path / "link.csv"
    path.write_text(text)
    with in_one_line(re.escape(f"{path}: {said}")):
        load_environment(str(environment(tmp_path)))


def test_a_bad_parquet_row_is_named_from_one(tmp_path):
    path = tmp_path / "link.parquet"
    pd.DataFrame({"t_s": [0.0, 1.0], "bps": [1.0, np.nan]}).to_parquet(path)
    with in_one_line(re.escape(f"{path}: row 2: bps: expected a finite number (got nan)")):
        load_environment(str(environment(tmp_path, KEYS.replace("csv", "parquet"))))
    path.write_text("not parquet")
    with in_one_line(re.escape(f"{path}: not a readable parquet file")):
        load_environment(str(environment(tmp_path, KEYS.replace("csv", "parquet"))))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("end_s = 10.0\n", "capacity: file: field required"),
        (KEYS.replace("link.csv", "gone.csv"), "capacity: file: no file "),
        (KEYS.replace("10.0", "2.5"), "capacity: end_s: expected an instant after the start of the last row of"),
        (KEYS.replace("end_s = 10.0\n", ""), "capacity: after_end = 'wrap' needs end_s"),
        ('file = "link.csv"\n', "capacity: needs end_s: the instant at which the last row ends, or after_end = 'hold'"),
        (KEYS.replace("wrap", "hold"), "capacity: after_end = 'hold' does not go with end_s = 10"),
        (KEYS.replace("wrap", "loop"), "capacity: after_end: input should be 'wrap' or 'hold' (got 'loop')"),
        (KEYS.replace("end_s", "end_ms"), "capacity: unknown key 'end_ms', did you mean 'end_s'?"),
        (KEYS.replace("10.0", "nan"), "capacity: end_s: input should be a finite number"),
        (KEYS + "[radio]\n", "unknown key 'radio'"),
    ],
)
def test_bad_keys_are_refused_in_one_line_that_names_file_and_key(keys, said, tmp_path):
    (tmp_path / "link.csv").write_text(HEAD + "0,5e6\n3,6e6\n")
    path = environment(tmp_path, keys)
    with in_one_line(re.escape(f"{path}: {said}")):
        load_environment(str(path))


def test_a_number_in_place_of_the_section_is_refused(tmp_path):
    path = tmp_path / "link.toml"
    path.write_text('name = "link"\nsource = "made for a test"\ncapacity = 3\n')
    with in_one_line(re.escape(f"{path}: capacity: expected a table [capacity] with file")):
        load_environment(str(path))
