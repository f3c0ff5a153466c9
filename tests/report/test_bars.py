"""The timeline's bars against the table of activities."""

import numpy as np
import pandas as pd
import pytest

from edgesim.analysis.runs import runs_of
from edgesim.report import states
from edgesim.report.bars import bars, tick_s, with_away
from edgesim.report.run_data import run_data


def unpacked(run, decoded) -> tuple[pd.DataFrame, float]:
    packed = run_data(run, "name")["bars"]
    gap, length = decoded(packed["gap"]), decoded(packed["length"])
    end = np.cumsum(gap + length)
    tick = packed["tick_s"]
    code = decoded(packed["code"]).astype(int)
    table = {
        "round": decoded(packed["round"]),
        "device": decoded(packed["device"]),
        "activity": [states.ACTIVITIES[one // len(states.OUTCOMES)] for one in code],
        "outcome": [states.OUTCOMES[one % len(states.OUTCOMES)] for one in code],
        "t_start_s": (end - length) * tick,
        "t_end_s": end * tick,
        "band_hz": decoded(packed["band"]) * packed["band_step_hz"],
    }
    return pd.DataFrame(table), tick


def test_the_page_holds_every_row_of_the_activities(any_run, decoded):
    (run,) = runs_of([any_run])
    found, tick = unpacked(run, decoded)
    rows = found[found["activity"] != "away"].reset_index(drop=True)
    acts = run.activities.sort_values(["device", "t_start_s", "t_end_s"], kind="stable").reset_index(drop=True)
    assert len(rows) == len(acts) > 50
    for name in ("round", "device", "activity", "outcome"):
        assert rows[name].tolist() == acts[name].tolist()
    for name in ("t_start_s", "t_end_s"):
        assert np.abs(rows[name] - acts[name]).max() <= 0.5 * tick * (1 + 1e-6)
    uploads = (acts["activity"] == "upload").to_numpy()
    given_hz = acts["bandwidth_hz"][uploads].to_numpy()
    assert rows["band_hz"][uploads].to_numpy() == pytest.approx(given_hz, abs=given_hz.max() / 1e4)
    assert not rows["band_hz"][~uploads].any()


def test_a_device_that_left_in_its_work_is_away_until_it_goes_on():
    rows = pd.DataFrame(
        [
            (1, 0, "upload", "paused", 1.0, 2.0),
            (3, 0, "upload", "done", 7.0, 8.0),
            (3, 1, "upload", "paused", 2.0, 3.0),
            (3, 2, "compute", "done", 4.0, 5.0),
        ],
        columns=["round", "device", "activity", "outcome", "t_start_s", "t_end_s"],
    ).assign(bandwidth_hz=1e6)
    away = with_away(rows).query("activity == 'away'")
    assert away[["round", "device", "t_start_s", "t_end_s"]].to_numpy().tolist() == [[1, 0, 2.0, 7.0]]


@pytest.mark.parametrize(("round_s", "end_s"), [(1.0, 1e3), (0.8, 16.0), (5.0, 4e9), (1e-6, 1e-4)])
def test_ticks_are_fine_in_a_round_and_few_enough_in_a_run(round_s, end_s):
    rounds = pd.DataFrame({"t_start_s": [0.0], "t_end_s": [round_s]})
    tick = tick_s(rounds, end_s)
    assert end_s / tick < 2**31
    assert tick <= 1.001e-4 * round_s or end_s / tick > 1e8


def test_every_outcome_has_a_colour_that_tells_what_was_lost():
    shown = dict(
        zip(
            [(activity, outcome) for activity in states.ACTIVITIES for outcome in states.OUTCOMES],
            [states.NAMES[place] for place in states.state_of_code()],
            strict=True,
        )
    )
    assert shown["upload", "done"] == shown["upload", "paused"] == "upload"
    assert shown["compute", "late"] == shown["upload", "late"] == "late"
    assert shown["download", "dropped"] == "dropped"
    assert {shown["away", outcome] for outcome in states.OUTCOMES} == {"away"}


def test_a_device_that_is_absent_is_away_where_it_does_nothing():
    """Device 0 works from 2 to 3 s of its absence; device 1 pauses while it is absent; device 2 is there."""
    absences = pd.DataFrame({"device": [0, 0, 1], "t_start_s": [1.0, 6.0, 2.0], "t_end_s": [4.0, 7.0, 5.0]})
    columns = ["round", "device", "activity", "t_start_s", "t_end_s", "outcome", "bandwidth_hz"]
    work = [
        (1, 0, "compute", 2.0, 3.0, "done", np.nan),
        (1, 1, "compute", 0.0, 2.0, "paused", np.nan),
        (1, 1, "compute", 5.0, 6.0, "done", np.nan),
        (1, 2, "compute", 0.0, 8.0, "done", np.nan),
    ]
    rows = with_away(pd.DataFrame(work, columns=columns), absences)
    away = rows[rows["activity"] == "away"][["device", "t_start_s", "t_end_s", "round"]]
    assert away.to_numpy().tolist() == [[0, 1, 2, 0], [0, 3, 4, 0], [0, 6, 7, 0], [1, 2, 5, 1]]
    assert rows["device"].is_monotonic_increasing
    assert len(rows) == len(work) + len(away)


def test_uploads_received_in_part_have_a_state_and_a_share_of_their_own():
    """The share stays with its row through the sorting, and is whole for all other rows."""
    columns = ["round", "device", "activity", "t_start_s", "t_end_s", "outcome", "bandwidth_hz", "received"]
    work = [
        (1, 1, "upload", 1.0, 2.0, states.IN_PART, 1e6, 0.25),
        (1, 1, "compute", 0.0, 1.0, "done", np.nan, 1.0),
        (1, 0, "upload", 0.5, 2.0, "done", 1e6, 1.0),
    ]
    absences = pd.DataFrame({"device": [0], "t_start_s": [2.0], "t_end_s": [3.0]})
    rows = with_away(pd.DataFrame(work, columns=columns), absences)
    assert rows["received"].tolist() == [1.0, 1.0, 1.0, 0.25]
    shown = [states.NAMES[states.state_of_code()[code]] for code in states.codes(rows)]
    assert shown == ["upload", "away", "compute", "received in part"]
    packed = bars(rows, 0.1)
    assert "received" in packed
    assert "received" not in bars(rows.drop(columns="received"), 0.1)
