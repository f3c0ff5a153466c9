import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.analysis.waste import kinds, totals, wasted_share_j, work_by_kind
from edgesim.folder.work_kinds import KINDS

COLUMNS = ["round", "device", "activity", "outcome", "t_start_s", "t_end_s", "bits", "energy_j"]


def activities(*rows: tuple) -> pd.DataFrame:
    """Each device has one task a round, with the number of the round."""
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"bits": float, "energy_j": float})
    return table.assign(task=table["round"])


def updates(*rows: tuple[int, int, int]) -> pd.DataFrame:
    """Of tasks with the number of the round that they began in."""
    table = pd.DataFrame(rows, columns=["round", "device", "staleness"]).astype("int32")
    return table.assign(task=table["round"] - table["staleness"])


ROUND = activities(
    # Device 0 arrived and was merged.
    (1, 0, "download", "done", 0.0, 0.1, 10, 0.09),
    (1, 0, "compute", "done", 0.1, 0.3, 0, 0.4),
    (1, 0, "upload", "done", 0.3, 1.0, 10, 0.5),
    # Device 1 was late: what it downloaded and computed was for nothing too.
    (1, 1, "download", "done", 0.0, 0.1, 10, 0.09),
    (1, 1, "compute", "done", 0.1, 0.5, 0, 0.8),
    (1, 1, "upload", "late", 0.5, 1.0, 6, 0.25),
    # Device 2 left in the middle of its upload.
    (1, 2, "download", "done", 0.0, 0.1, 10, 0.09),
    (1, 2, "compute", "done", 0.1, 0.2, 0, 0.2),
    (1, 2, "upload", "dropped", 0.2, 0.4, 2, 0.1),
    # Device 3 was not taken: nor was its download of any use.
    (1, 3, "download", "done", 0.0, 0.1, 10, 0.09),
    (1, 3, "compute", "unscheduled", 0.1, 0.9, 0, 1.6),
    # Device 4 arrived, but the server merged it not.
    (1, 4, "compute", "done", 0.0, 0.4, 0, 0.8),
    (1, 4, "upload", "done", 0.4, 0.6, 10, 0.2),
    # The server called device 5 off.
    (1, 5, "compute", "cancelled", 0.0, 0.5, 0, 1.0),
    # Device 6 was taken and left before its first bit; device 7 left while it computed.
    (1, 6, "compute", "done", 0.0, 0.3, 0, 0.6),
    (1, 7, "compute", "dropped", 0.0, 0.2, 0, 0.4),
)


def test_every_way_to_waste_work_is_told_from_the_tables_of_a_round():
    work = work_by_kind(ROUND, updates((1, 0, 0)))
    found = {row.kind: (row.seconds, row.bits, row.joules) for row in work.itertuples()}
    expected = {
        "useful": (1.0, 20, 0.99),
        "late": (1.0, 16, 1.14),
        "dropped": (0.4 + 0.3 + 0.2, 12, 0.39 + 0.6 + 0.4),
        "unscheduled": (0.9, 10, 1.69),
        "unused": (0.6 + 0.5, 10, 1.0 + 1.0),
    }
    assert list(found) == list(KINDS)
    for kind, amounts in expected.items():
        assert found[kind] == pytest.approx(amounts), kind


def test_a_latecomer_that_is_merged_later_was_useful_from_its_first_round_on():
    rows = activities(
        (1, 0, "compute", "done", 0.0, 0.5, 0, 1.0),
        (1, 0, "upload", "late", 0.5, 1.0, 7, 0.5),
        (2, 0, "upload", "done", 1.0, 1.5, 3, 0.5),
        (3, 0, "compute", "unscheduled", 2.0, 2.5, 0, 1.0),
    ).assign(task=[1, 1, 1, 3])
    assert kinds(rows, updates((2, 0, 1))).tolist() == ["useful", "useful", "useful", "unscheduled"]
    assert kinds(rows, updates()).tolist() == ["late", "late", "late", "unscheduled"]


def test_the_share_of_joules_wasted_is_that_of_all_activities_and_unknown_without_any():
    whole = ROUND["energy_j"].sum()
    assert wasted_share_j(ROUND, updates((1, 0, 0))) == pytest.approx((whole - 0.99) / whole)
    assert wasted_share_j(ROUND, updates()) == 1.0
    assert math.isnan(wasted_share_j(ROUND.iloc[:0], updates()))


def test_tasks_of_one_device_and_round_are_told_apart_by_their_numbers():
    rows = activities(
        (1, 0, "compute", "done", 0.0, 1.0, 0, 1.0),
        (1, 0, "upload", "dropped", 1.0, 2.0, 5, 1.0),
        (1, 0, "compute", "done", 3.0, 4.0, 0, 1.0),
        (1, 0, "upload", "done", 4.0, 5.0, 9, 1.0),
    )
    merged = updates((1, 0, 0))
    numbered = rows.assign(task=[1, 1, 2, 2])
    assert kinds(numbered, merged.assign(task=2)).tolist() == ["dropped", "dropped", "useful", "useful"]
    assert kinds(numbered, merged.assign(task=9)).tolist() == ["dropped", "dropped", "unused", "unused"]


ROWS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.integers(0, 5),
        st.sampled_from(["download", "compute", "upload"]),
        st.sampled_from(["done", "late", "dropped", "cancelled", "unscheduled"]),
        st.floats(0, 100),
        st.floats(1e-3, 50),
        st.integers(0, 10**9),
        st.floats(0, 100),
    ),
    max_size=40,
)
UPDATES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5), st.integers(0, 3)), max_size=12)


@settings(max_examples=40)
@given(ROWS, UPDATES)
def test_each_row_is_of_the_kind_that_reading_its_task_row_by_row_gives(rows, merged):
    table = activities(*((*row[:5], row[4] + row[5], *row[6:]) for row in rows))
    used = {(number - stale, device) for number, device, stale in merged}
    expected = []
    for number, device, _, outcome, *_ in rows:
        task = [row for row in rows if row[:2] == (number, device)]
        ends = {row[3] for row in task}
        if (number, device) in used and outcome in ("done", "late"):
            expected.append("useful")
        elif outcome != "done":
            expected.append("unused" if outcome == "cancelled" else outcome)
        else:
            bad = [end for end in ("dropped", "late", "unscheduled") if end in ends]
            sent = "cancelled" in ends or any(row[2] == "upload" for row in task)
            expected.append(bad[0] if bad else "unused" if sent else "dropped")
    assert kinds(table, updates(*merged)).tolist() == expected
    amounts = totals(work_by_kind(table, updates(*merged)))
    assert amounts["bits"].sum() == sum(row[6] for row in rows)
    whole = amounts["joules"]
    if whole.sum() > 0:
        # Promised to the last digit.
        wasted = whole.drop("useful", errors="ignore").sum()
        assert wasted_share_j(table, updates(*merged)) == wasted / whole.sum()
