"""Files of rows that only some runs have: what is written is read, and what no run wrote is refused in a line."""

import numpy as np
import pandas as pd
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.folder.rows_file import WAYS
from edgesim.mobility.position_file import read_positions


def test_what_is_written_is_read_and_is_a_recording(tmp_path):
    rows = np.array([0, 0, 1]), np.array([0.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    assert WAYS.read(tmp_path) is None
    WAYS.write(tmp_path, rows)
    frame = WAYS.read(tmp_path)
    assert [frame[name].tolist() for name in frame] == [column.tolist() for column in rows]
    assert read_positions(tmp_path / WAYS.name).device_count == 2


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("device", -1, "row 2: expected a device from 0 on"),
        ("t_s", -1.0, "row 2: expected a device from 0 on, an instant from 0 s on"),
        ("x_m", np.inf, "row 2: expected a device"),
        ("y_m", None, "expected a value in every row"),
    ],
)
def test_a_row_that_is_no_place_is_refused(tmp_path, column, value, said):
    rows = pd.DataFrame({"device": [0, 1], "t_s": [0.0, 0.0], "x_m": [0.0, 0.0], "y_m": [0.0, 0.0]})
    rows.loc[1, column] = value
    rows.to_parquet(tmp_path / WAYS.name)
    with pytest.raises(EdgesimError, match=said):
        WAYS.read(tmp_path)


def test_another_file_is_refused(tmp_path):
    (tmp_path / WAYS.name).write_bytes(b"nothing")
    with pytest.raises(EdgesimError, match="cannot be read"):
        WAYS.read(tmp_path)
