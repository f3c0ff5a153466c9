"""What becomes of work when its device leaves, against a schedule by hand with three interruptions.

Device 1 of the golden round alone: it computes for 0.5 s and then has the whole 500 kHz, 3,825,525.9 bit/s for 1 Mbit.
"""

import itertools

import golden
import numpy as np
import pytest
from golden import assert_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_runs import TIMED, merged, write_rows
from whole_runs import play as simulate

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import joined

RATE_BPS = 5e5 * np.log2(1 + 200)
ALONE_S = 0.5 + 1e6 / RATE_BPS
PERIODS = ((0.0, 0.2), (0.3, 0.45), (0.6, 0.85), (1.0, 9.0))
SENT = 0.1 * RATE_BPS
BACK_S = 1.0 + (1e6 - SENT) / RATE_BPS
UNDISTURBED = [(1, "compute", 0.0, 0.5, "done", 0, 0), (1, "upload", 0.5, ALONE_S, "done", 1e6, 5e5)]
PAUSED = [
    (1, "compute", 0.0, 0.2, "paused", 0, 0),
    (1, "compute", 0.3, 0.45, "paused", 0, 0),
    (1, "compute", 0.6, 0.75, "done", 0, 0),
    (1, "upload", 0.75, 0.85, "paused", SENT, 5e5),
    (1, "upload", 1.0, BACK_S, "done", 1e6 - SENT, 5e5),
]


def play(folder, interruption, tmax_s=3.0, periods=PERIODS, rounds=1, **knobs):
    everyone = [(device, *period) for device in (0, 1, 2) for period in periods]
    device, start_s, end_s = (np.array(column) for column in zip(*everyone, strict=True))
    table = IntervalTable(joined(device, start_s, end_s, np.inf, 3), "absent")
    knobs = {"computes": "selected", "admission": "count", "count": 1, "allocator": "equal_share"} | knobs
    sections = {"availability": {"interruption": interruption}}
    return golden.play(folder, [1], table, rounds, sections=sections, tmax_s=tmax_s, **knobs)


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("interruption", "knobs", "rows", "ends_s", "counts", "wasted"),
    [
        ("pause", {}, PAUSED, [BACK_S], [1, 0, 0], {}),
        ("abort", {}, [(1, "compute", 0.0, 0.2, "dropped", 0, 0)], [3.0], [0, 0, 1], {"dropped": 0.2}),
        ("ignore", {}, UNDISTURBED, [ALONE_S], [1, 0, 0], {}),
        # Paused at the deadline, while it sends or computes: the last row says that the work is late.
        ("pause", {"tmax_s": 0.9}, [*PAUSED[:3], (1, "upload", 0.75, 0.85, "late", SENT, 5e5)], [0.9], [0, 1, 0],
         {"late": 0.6}),
        ("pause", {"tmax_s": 0.55}, [PAUSED[0], (1, "compute", 0.3, 0.45, "late", 0, 0)], [0.55], [0, 1, 0],
         {"late": 0.35}),
        ("pause", {"tmax_s": 0.25}, [(1, "compute", 0.0, 0.2, "late", 0, 0)], [0.25], [0, 1, 0], {"late": 0.2}),
        # Who never comes back is dropped when it leaves.
        ("pause", {"periods": ((0.0, 0.2), (0.3, 0.4))}, [PAUSED[0], (1, "compute", 0.3, 0.4, "dropped", 0, 0)],
         [3.0], [0, 0, 1], {"dropped": 0.3}),
    ],
    ids=["pause", "abort", "ignore", "late upload", "late computing", "away at the deadline", "never back"],
)  # fmt: skip
def test_the_rows_of_work_that_is_interrupted_are_those_by_hand(
    tmp_path, interruption, knobs, rows, ends_s, counts, wasted
):
    played = play(tmp_path, interruption, **knobs)
    assert_rows(played.activities, rows)
    assert played.rounds["t_end_s"].tolist() == pytest.approx(ends_s)
    assert played.rounds[["arrived", "late", "dropped"]].to_numpy().tolist() == [counts]
    assert played.metric("wasted_s", "key").to_dict() == pytest.approx(wasted)
    # Away from 0.2 to 0.3, from 0.45 to 0.6 and from 0.85 to 1 s.
    away_s = [0.1 + 0.05, min(ALONE_S, 0.6) - 0.5] if interruption == "ignore" else [0.0] * len(rows)
    assert played.activities["away_s"].tolist() == pytest.approx(away_s)


@pytest.mark.parametrize(
    ("interruption", "tmax_s", "periods", "rows"),
    [
        ("pause", 0.9, PERIODS, PAUSED),
        # Still computing at the deadline of 0.4 s.
        ("abort", 0.4, ((0.0, 9.0),), UNDISTURBED),
    ],
)
def test_a_kept_latecomer_may_pause_or_compute_over_the_deadline(tmp_path, interruption, tmax_s, periods, rows):
    played = play(tmp_path, interruption, tmax_s, periods, rounds=2, late="keep")
    assert_rows(played.activities.query("round == 2 and task == 1"), rows)
    assert played.rounds["late"].tolist()[0] == 1
    # No model was made in the meantime.
    assert played.updates[["round", "device", "task", "staleness"]].to_numpy().tolist()[0] == [2, 1, 1, 0]


@settings(max_examples=12)
@given(st.lists(st.floats(0.01, 0.3), min_size=1, max_size=8))
def test_pauses_cost_exactly_their_length_and_no_work_is_done_twice(tmp_path_factory, lengths_s):
    edges = np.cumsum([0.0, *lengths_s])
    periods = [(edges[k], edges[k + 1]) for k in range(0, len(edges) - 1, 2)] + [(edges[-1] + 0.1, 99.0)]
    acts = play(tmp_path_factory.mktemp("run"), "pause", tmax_s=9.0, periods=periods).activities
    spent_s = (acts["t_end_s"] - acts["t_start_s"]).groupby(acts["activity"]).sum()
    assert spent_s["compute"] == pytest.approx(0.5)
    assert spent_s["upload"] == pytest.approx(1e6 / RATE_BPS)
    assert acts["bits"].sum() == pytest.approx(1e6)
    last_s = acts["t_end_s"].max()
    gaps = [(end_s, start_s) for (_, end_s), (start_s, _) in itertools.pairwise(periods) if end_s < last_s]
    away_s = sum(max(0.0, min(start_s, last_s) - end_s) for end_s, start_s in gaps)
    assert last_s == pytest.approx(ALONE_S + away_s)


@pytest.mark.whole_family
@pytest.mark.parametrize(("count", "factor", "invited"), [(3, 1.3, 4), (4, 1.3, 6), (10, 1.25, 13), (5, 1.2, 6)])
def test_over_commitment_is_rounded_up_and_closes_at_the_wanted_number_of_arrivals(count, factor, invited, tmp_path):
    """asynchronous.md: invite ceil(1.3 K), close at the K-th arrival."""
    knobs = {"payload_bits": 1e6, "tmax_s": 5.0, "allocator": "equal_share"}
    knobs |= {"admission": "count", "count": count, "over_commitment": factor}
    played = simulate(tmp_path, TIMED, round=knobs, rounds=5)
    assert played.rounds[["selected", "arrived", "late"]].to_numpy().tolist() == [[invited, count, invited - count]] * 5
    last_s = played.uploads.query("outcome == 'done'").groupby("round")["t_end_s"].max()
    assert last_s.to_numpy() == pytest.approx(played.rounds["t_end_s"].to_numpy())


@pytest.mark.parametrize(
    ("rows", "ends_s", "late"),
    [
        # Rounds of 80 and 120 s, then one that would last for a day: it is closed after 167.5 s.
        ([(0, 70), (80, 110), (200, 86_400)], [80.0, 200.0, 367.5], [0, 0, 1]),
        # The second round already would: it is closed after 310 s.
        ([(0, 70), (80, 86_400)], [80.0, 390.0], [0, 1]),
    ],
)
def test_the_deadline_moves_by_refls_rule(tmp_path, rows, ends_s, late):
    """asynchronous.md: a = 0.25, D_avg 1000 s; after 80 s the deadline is 310 s, after 120 s more it is 167.5 s.

    One device computes for 10 s in every round; from each instant of the rows on, an upload takes so many seconds.
    """
    speed = write_rows(tmp_path / "speed.csv", "device,s_per_sample", [(0, 1)])
    links = write_rows(tmp_path / "links.csv", "device,t_s,bps", [(0, t_s, 1e6 / upload_s) for t_s, upload_s in rows])
    rounds = simulate(
        tmp_path / "run",
        TIMED,
        rounds=len(ends_s),
        devices={"count": 1, "profile": speed, "links": {"file": links, "after_end": "hold"}},
        radio={"sharing": "own"},
        round={"payload_bits": 1e6, "tmax_s": 1000.0, "admission": "count", "count": 1, "late": "keep"}
        | {"moving_deadline": 0.25},
        learning={"steps": 1, "batch_size": 10},
    ).rounds
    assert rounds["t_end_s"].tolist() == pytest.approx(ends_s, rel=1e-12)
    assert rounds["late"].tolist() == late


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"round": {"moving_deadline": 0.25}}, r"round\.moving_deadline = 0\.25 needs round\."),
        ({"round": {"moving_deadline": 0.25, "late": "keep", "close": "deadline"}}, r"round\.moving_deadline = 0\.25 "),
        ({"staleness": {"limit": 3}}, r"staleness\.limit = .* needs round\.late = 'keep'"),
        ({"staleness": {"weight": "polynomial"}}, r"staleness\.weight = .* needs round\.late = 'keep'"),
    ],
)
@pytest.mark.whole_family
def test_what_is_for_late_updates_that_are_kept_is_refused_without(sections, said):
    with pytest.raises(EdgesimError, match=said):
        simulation.complete(parse(sections, "test"))
    simulation.complete(parse(merged(sections, {"round": {"late": "keep", "close": "arrivals"}}), "test"))


def of_trace(folder, **sections):
    """A run of two devices whose recording ends at 100 s."""
    file = write_rows(folder / "trace.csv", "device,start_s,end_s,length_s", [(0, 0, 100, 100), (1, 0, 100, 100)])
    there = {"availability": {"model": "table", "file": file}, "devices": {"count": 2}, "round": {"payload_bits": 1e6}}
    return simulate(folder / "run", TIMED, there, **sections)


@pytest.mark.parametrize(
    "sections",
    [
        {"round": {"protocol": "asynchronous", "admission": "count", "count": 2}},
        {"round": {"late": "keep"}},
        {"availability": {"interruption": "pause"}},
    ],
    ids=["asynchronous", "keep", "pause"],
)
def test_a_trace_that_ends_after_the_run_is_long_enough_however_far_the_engine_looks_ahead(tmp_path, sections):
    assert of_trace(tmp_path, rounds=3, **sections).result.reason == "all rounds done"


def test_a_run_that_comes_to_the_end_of_its_trace_says_so(tmp_path):
    with pytest.raises(EdgesimError, match=r"trace\.csv: the trace ends at 100 s, but what follows is asked for"):
        of_trace(tmp_path, rounds=300)
    assert read_table(tmp_path / "run", "rounds")["t_end_s"].max() <= 100.0
