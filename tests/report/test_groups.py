"""Groups of devices: what an aggregated page shows, against the rows one by one."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.analysis.band_use import band_use
from edgesim.analysis.runs import runs_of
from edgesim.folder.rows_file import ABSENCES
from edgesim.report import groups, run_data, states
from edgesim.report.bars import with_away

SPAN = st.tuples(st.floats(0, 10), st.floats(0, 10), st.integers(0, 2))


@settings(deadline=None, max_examples=30)
@given(st.lists(SPAN, min_size=1, max_size=20))
def test_overlaps_are_those_of_every_interval_with_every_span(spans):
    start, end = np.sort([span[:2] for span in spans], axis=1).T
    group = np.array([span[2] for span in spans])
    found = groups.overlaps_s(start, end, group, 3, 10 / groups.SPANS)
    edges = np.linspace(0, 10, groups.SPANS + 1)
    inside = np.clip(np.minimum.outer(end, edges[1:]) - np.maximum.outer(start, edges[:-1]), 0, None)
    expected = np.array([inside[group == one].sum(axis=0) for one in range(3)])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_an_aggregated_run_keeps_the_time_in_each_state_and_the_band(any_run, decoded, monkeypatch):
    (run,) = runs_of([any_run])
    monkeypatch.setattr(run_data, "AGGREGATED_FROM", 1)
    data = run_data.run_data(run, "name")
    found = data["groups"]
    absences = ABSENCES.read(run.folder)
    absences = absences if absences is None else absences.assign(t_end_s=absences["t_end_s"].clip(upper=data["end_s"]))
    rows = with_away(run.activities, absences)
    lasts = rows["t_end_s"] - rows["t_start_s"]
    states = {
        "compute": (rows["activity"] == "compute") & rows["outcome"].isin(["done", "paused"]),
        "upload": (rows["activity"] == "upload") & rows["outcome"].isin(["done", "paused"]),
        "late": rows["outcome"] == "late",
        "away": rows["activity"] == "away",
    }
    # A cell is rounded to hundredths of a device.
    slack_s = 0.005 * groups.SPANS * found["span_s"]
    for state, mine in states.items():
        assert mine.any() == (state in found["states"])
        if mine.any():
            devices = decoded(found["states"][state]).reshape(found["count"], -1) / 100
            expected_s = lasts[mine].groupby(rows["device"] // found["size"]).sum().reindex(range(found["count"]))
            np.testing.assert_allclose(devices.sum(axis=1) * found["span_s"], expected_s.fillna(0), atol=slack_s)
    uploads = rows[rows["activity"] == "upload"]
    share = band_use(uploads, run.bandwidth_hz, reshared=False).mean(0, data["end_s"])
    np.testing.assert_allclose(np.mean(found["band_hz"]) / run.bandwidth_hz, share, rtol=1e-3)
    assert decoded(data["map"]["count"]).sum() == run.device_count


def test_who_took_part_in_groups_counts_each_device_once_by_its_last_state(decoded):
    rows = pd.DataFrame({"round": [1, 1, 1, 2, 2, 9], "device": [0, 0, 1, 0, 5, 0]})
    state = np.array(
        [states.NAMES.index(name) for name in ("compute", "upload", "compute", "late", "upload", "upload")]
    )
    found = groups.taking_part(rows, pd.DataFrame({"round": [1, 2]}), state, 2, 3)
    counts = {name: decoded(column).reshape(3, 2).tolist() for name, column in found["states"].items()}
    assert counts == {
        "compute": [[100, 0], [0, 0], [0, 0]],
        "upload": [[100, 0], [0, 0], [0, 100]],
        "late": [[0, 100], [0, 0], [0, 0]],
    }
