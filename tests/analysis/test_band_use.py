from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.analysis.band_use import band_use, use_by_station
from edgesim.folder.run_schema import SCHEMAS


def uploads(*rows: tuple[float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["t_start_s", "t_end_s", "bandwidth_hz"]).astype(float)


def test_reservations_add_up_while_they_overlap():
    use = band_use(uploads((1, 3, 2e6), (2, 3, 5e6), (3, 4, 10e6), (6, 7, 1e6)), 10e6, reshared=False)
    assert use.t_s.tolist() == [1, 2, 3, 4, 6, 7]
    assert use.share.tolist() == pytest.approx([0.2, 0.7, 1.0, 0.0, 0.1, 0.0])
    assert use.mean(0.0, 10.0) == pytest.approx((0.2 + 0.7 + 1.0 + 0.1) / 10)
    assert use.mean(2.5, 3.5) == pytest.approx(0.85)
    assert band_use(uploads(), 1e6, reshared=False).mean(0.0, 5.0) == 0.0


def test_a_band_that_is_shared_anew_is_used_whole_while_anybody_sends():
    use = band_use(uploads((1, 3, 6e6), (2, 4, 4e6), (5, 6, 1e7)), 10e6, reshared=True)
    assert dict(zip(use.t_s.tolist(), use.share.tolist(), strict=True)) == {1: 1, 2: 1, 3: 1, 4: 0, 5: 1, 6: 0}


ROWS = st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 20), st.floats(1e3, 1e7)), min_size=1, max_size=20)


@given(ROWS, st.floats(0, 70))
def test_the_share_at_any_instant_is_that_of_the_uploads_on_the_air(rows, t_s):
    table = uploads(*((start, start + length, hz) for start, length, hz in rows))
    use = band_use(table, 20e6, reshared=False)
    on_the_air = table[(table["t_start_s"] <= t_s) & (t_s < table["t_end_s"])]
    place = np.searchsorted(use.t_s, t_s, side="right") - 1
    found = use.share[place] if place >= 0 else 0.0
    assert found == pytest.approx(on_the_air["bandwidth_hz"].sum() / 20e6, abs=1e-8)
    hertz_s = ((table["t_end_s"] - table["t_start_s"]) * table["bandwidth_hz"]).sum()
    assert use.mean(0.0, 100.0) == pytest.approx(hertz_s / 20e6 / 100.0, abs=1e-8)


def test_uploads_count_for_the_station_of_their_task_or_of_their_device_in_the_frame():
    acts = uploads((0, 1, 2e6), (2, 3, 4e6), (2, 3, 1e6)).assign(activity="upload", device=[0, 0, 1], task=[1, 2, 2])
    acts["round"] = acts["task"]
    rounds = pd.DataFrame({"round": [1, 2], "frame": [0, 1]})
    devices = pd.DataFrame({"device": [0, 1, 0, 1], "frame": [0, 0, 1, 1], "station": [1, 1, 0, 1]})
    stations = pd.DataFrame({"station": [0, 1], "bandwidth_hz": [10e6, 10e6]})
    keys = pd.DataFrame({"name": "task_station", "key": ["0/1", "0/2", "1/2"], "value": [0.0, 1.0, 1.0]})
    tables = {"activities": acts, "devices": devices, "stations": stations, "metrics": keys, "rounds": rounds}
    nobody = SCHEMAS["handovers"].empty_table().to_pandas()
    run = SimpleNamespace(sharing="reserved", handovers=nobody, **tables)
    west, east = (use for _, use in use_by_station(run))
    assert west.mean(0.0, 1.0) == pytest.approx(0.2)
    assert east.mean(2.0, 3.0) == pytest.approx(0.5)
    run.metrics = keys[:0]
    west, east = (use for _, use in use_by_station(run))
    assert west.mean(2.0, 3.0) == pytest.approx(0.4)
    assert east.mean(0.0, 1.0) == pytest.approx(0.2)
