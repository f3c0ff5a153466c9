"""What becomes of work when its device leaves, against a schedule by hand with three interruptions.

Device 1 of the golden round alone: it computes for 0.5 s and then has the whole 500 kHz, 3,825,525.9 bit/s for 1 Mbit.
"""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.analysis.waste import work_by_kind
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import joined

_spec = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("test_golden_round.py"))
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)

RATE_BPS = 5e5 * np.log2(1 + 200)
PERIODS = ((0.0, 0.2), (0.3, 0.45), (0.6, 0.85), (1.0, 9.0))


def play(folder, interruption, tmax_s=3.0, periods=PERIODS, rounds=1, **knobs):
    everyone = [(device, *period) for device in (0, 1, 2) for period in periods]
    device, start_s, end_s = (np.array(column) for column in zip(*everyone, strict=True))
    table = IntervalTable(joined(device, start_s, end_s, np.inf, 3), "absent")
    settings_ = {"computes": "selected", "admission": "count", "count": 1, "allocator": "equal_share", **knobs}
    golden.play_rounds(folder, rounds, [1], table, interruption=interruption, tmax_s=tmax_s, **settings_)
    return read_table(folder, "rounds"), read_table(folder, "activities")


def test_paused_work_goes_on_where_it_stopped(tmp_path):
    rounds, acts = play(tmp_path, "pause")
    assert acts["away_s"].tolist() == [0.0] * 5
    sent = 0.1 * RATE_BPS
    end_s = 1.0 + (1e6 - sent) / RATE_BPS
    golden.same(
        golden.rows(acts),
        [
            (1, "compute", 0.0, 0.2, "paused", 0, 0),
            (1, "compute", 0.3, 0.45, "paused", 0, 0),
            (1, "compute", 0.6, 0.75, "done", 0, 0),
            (1, "upload", 0.75, 0.85, "paused", sent, 5e5),
            (1, "upload", 1.0, end_s, "done", 1e6 - sent, 5e5),
        ],
    )
    assert rounds["t_end_s"].tolist() == pytest.approx([end_s])
    assert rounds["arrived"].tolist() == [1]
    assert read_table(tmp_path, "metrics").query("name == 'wasted_s'").empty


def test_aborted_work_is_lost_at_the_first_interruption(tmp_path):
    rounds, acts = play(tmp_path, "abort")
    golden.same(golden.rows(acts), [(1, "compute", 0.0, 0.2, "dropped", 0, 0)])
    assert rounds["t_end_s"].tolist() == [3.0]


def test_ignored_interruptions_leave_no_trace_but_the_seconds_worked_while_away(tmp_path):
    _, acts = play(tmp_path, "ignore")
    end_s = 0.5 + 1e6 / RATE_BPS
    # Away from 0.2 to 0.3, from 0.45 to 0.6 and from 0.85 to 1 s.
    assert acts["away_s"].tolist() == pytest.approx([0.1 + 0.05, min(end_s, 0.6) - 0.5])
    golden.same(
        golden.rows(acts),
        [(1, "compute", 0.0, 0.5, "done", 0, 0), (1, "upload", 0.5, 0.5 + 1e6 / RATE_BPS, "done", 1e6, 5e5)],
    )


def test_work_that_is_paused_at_the_deadline_is_late(tmp_path):
    rounds, acts = play(tmp_path, "pause", tmax_s=0.9)
    assert rounds["late"].tolist() == [1]
    assert acts["outcome"].tolist() == ["paused", "paused", "done", "late"]


@pytest.mark.parametrize(("tmax_s", "expected"), [(0.55, ["paused", "late"]), (0.25, ["late"])])
def test_the_last_row_of_work_that_is_away_at_the_deadline_says_that_it_is_late(tmp_path, tmax_s, expected):
    """Computing stops at 0.2 s for 0.1 s, and at 0.45 s until 0.6 s."""
    rounds, acts = play(tmp_path, "pause", tmax_s=tmax_s)
    assert acts["outcome"].tolist() == expected
    assert rounds["late"].tolist() == [1]
    assert set(work_by_kind(acts, read_table(tmp_path, "updates")).query("kind != 'useful'")["kind"]) == {"late"}
    told = read_table(tmp_path, "metrics").query("name == 'wasted_s'")
    assert told[["key", "value"]].to_numpy().tolist() == [["late", pytest.approx(0.2 + 0.15 * (tmax_s > 0.5))]]


def test_a_kept_latecomer_may_pause_over_the_deadline(tmp_path):
    rounds, acts = play(tmp_path, "pause", tmax_s=0.9, rounds=2, late="keep")
    assert rounds["late"].tolist()[0] == 1
    assert acts.query("activity == 'upload'")["outcome"].tolist()[:2] == ["paused", "done"]
    updates = read_table(tmp_path, "updates")
    # No model was made in the meantime.
    assert updates.query("device == 1")[["round", "task", "staleness"]].to_numpy().tolist()[0] == [2, 1, 0]


def test_a_device_that_never_comes_back_is_dropped_when_it_leaves(tmp_path):
    rounds, acts = play(tmp_path, "pause", periods=((0.0, 0.2), (0.3, 0.4)))
    assert acts["outcome"].tolist() == ["paused", "dropped"]
    assert rounds["dropped"].tolist() == [1]


@settings(max_examples=25)
@given(st.lists(st.floats(0.01, 0.3), min_size=1, max_size=8))
def test_pauses_cost_exactly_their_length_and_no_work_is_done_twice(tmp_path_factory, lengths_s):
    edges = np.cumsum([0.0, *lengths_s])
    periods = [(edges[k], edges[k + 1]) for k in range(0, len(edges) - 1, 2)] + [(edges[-1] + 0.1, 99.0)]
    _, acts = play(tmp_path_factory.mktemp("run"), "pause", tmax_s=9.0, periods=periods)
    spent_s = (acts["t_end_s"] - acts["t_start_s"]).groupby(acts["activity"]).sum()
    assert spent_s["compute"] == pytest.approx(0.5)
    assert spent_s["upload"] == pytest.approx(1e6 / RATE_BPS)
    assert acts["bits"].sum() == pytest.approx(1e6)
    away_s = sum(
        max(0.0, min(start_s, acts["t_end_s"].max()) - end_s)
        for (_, end_s), (start_s, _) in itertools.pairwise(periods)
        if end_s < acts["t_end_s"].max()
    )
    assert acts["t_end_s"].max() == pytest.approx(0.5 + 1e6 / RATE_BPS + away_s)


def test_over_commitment_closes_at_the_wanted_number_of_arrivals(tmp_path):
    values = {
        "rounds": 20,
        "round": {
            "payload_bits": 1e6,
            "tmax_s": 5.0,
            "admission": "count",
            "count": 10,
            "over_commitment": 1.3,
            "allocator": "equal_share",
        },
        "learning": {"training": "none", "pretrain": True},
        "data": {"partition": "fedteddi"},
    }
    simulation.run(parse(values, "test"), tmp_path)
    rounds, acts = (read_table(tmp_path, name) for name in ("rounds", "activities"))
    assert rounds["selected"].tolist() == [13] * 20
    assert rounds["arrived"].tolist() == [10] * 20
    assert rounds["late"].tolist() == [3] * 20
    tenth_s = acts.query("activity == 'upload' and outcome == 'done'").groupby("round")["t_end_s"].max()
    assert tenth_s.to_numpy() == pytest.approx(rounds["t_end_s"].to_numpy())


@pytest.mark.parametrize(("count", "factor", "invited"), [(3, 1.3, 4), (4, 1.3, 6), (10, 1.25, 13), (5, 1.2, 6)])
def test_over_commitment_is_rounded_up(count, factor, invited, tmp_path):
    """asynchronous.md: invite ceil(1.3 K), close at the K-th arrival."""
    band = {"admission": "count", "count": count, "over_commitment": factor, "allocator": "equal_share"}
    values = {
        "rounds": 2,
        "round": {"payload_bits": 1e6, "tmax_s": 5.0, **band},
        "learning": {"training": "none", "pretrain": True},
        "data": {"partition": "fedteddi"},
    }
    simulation.run(parse(values, "test"), tmp_path)
    rounds = read_table(tmp_path, "rounds")
    assert rounds[["selected", "arrived"]].to_numpy().tolist() == [[invited, count]] * 2


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
    (tmp_path / "speed.csv").write_text("device,s_per_sample\n0,1\n")
    links = [f"0,{t_s},{1e6 / upload_s!r}" for t_s, upload_s in rows]
    (tmp_path / "links.csv").write_text("\n".join(["device,t_s,bps", *links]))
    values = {
        "rounds": len(ends_s),
        "devices": {
            "count": 1,
            "profile": str(tmp_path / "speed.csv"),
            "links": {"file": str(tmp_path / "links.csv"), "after_end": "hold"},
        },
        "radio": {"sharing": "own"},
        "round": {"payload_bits": 1e6, "tmax_s": 1000.0, "admission": "count", "count": 1}
        | {"moving_deadline": 0.25, "late": "keep"},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "pretrain": True},
    }
    simulation.run(parse(values, "test"), tmp_path / "run")
    rounds = read_table(tmp_path / "run", "rounds")
    assert rounds["t_end_s"].tolist() == pytest.approx(ends_s, rel=1e-12)
    assert rounds["late"].tolist() == late


@pytest.mark.parametrize("knobs", [{}, {"late": "keep", "close": "deadline"}])
def test_a_moving_deadline_is_for_late_updates_that_are_kept(knobs):
    with pytest.raises(EdgesimError, match=r"round\.moving_deadline = 0\.25 needs round\."):
        parse({"round": {"moving_deadline": 0.25, **knobs}}, "test")


@pytest.mark.parametrize("staleness", [{"limit": 3}, {"weight": "polynomial"}])
def test_staleness_is_for_late_updates_that_are_kept(staleness):
    with pytest.raises(EdgesimError, match=r"staleness\.\w+ = .* needs round\.late = 'keep'"):
        simulation.complete(parse({"staleness": staleness}, "test"))
    simulation.complete(parse({"staleness": staleness, "round": {"late": "keep"}}, "test"))


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_paused_latecomers_keep_their_reservation_and_the_band_is_never_overdrawn(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("run")
    values = {
        "seed": seed,
        "rounds": 25,
        "availability": {"model": "bernoulli", "probability": 0.7, "slot_s": 0.35, "interruption": "pause"},
        "round": {"payload_bits": 17_881_664.0, "late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.5},
        "learning": {"training": "none", "pretrain": True},
        "data": {"partition": "fedteddi"},
    }
    simulation.run(parse(values, "test"), folder)
    uploads = read_table(folder, "activities").query("activity == 'upload'")
    edges_s = np.unique(uploads[["t_start_s", "t_end_s"]].to_numpy())
    middles_s = (edges_s[:-1] + edges_s[1:]) / 2
    on_air = (uploads["t_start_s"].to_numpy() < middles_s[:, None]) & (
        uploads["t_end_s"].to_numpy() > middles_s[:, None]
    )
    assert (on_air @ uploads["bandwidth_hz"].to_numpy()).max() <= 20e6 * (1 + 1e-6)


def test_a_kept_latecomer_may_still_be_computing_at_the_deadline(tmp_path):
    """Tmax 0.4 s: device 1 computes until 0.5 s, sends on the whole band and arrives in the second round."""
    rounds, acts = play(tmp_path, "abort", tmax_s=0.4, periods=((0.0, 9.0),), rounds=2, late="keep")
    end_s = 0.5 + 1e6 / RATE_BPS
    golden.same(
        golden.rows(acts.query("round == 2")),
        [(1, "compute", 0.0, 0.5, "done", 0, 0), (1, "upload", 0.5, end_s, "done", 1e6, 5e5)],
    )
    assert rounds["late"].tolist() == [1, 0]
    assert rounds["t_end_s"].tolist() == pytest.approx([0.4, 0.8])
    updates = read_table(tmp_path, "updates")
    assert updates[["round", "device", "task", "staleness"]].to_numpy().tolist() == [[2, 1, 1, 0]]
    assert read_table(tmp_path, "metrics").query("name == 'wasted_s'").empty


def table_config(folder, rounds, **sections):
    (folder / "trace.csv").write_text("device,start_s,end_s,length_s\n0,0,100,100\n1,0,100,100\n")
    return parse(
        {
            "rounds": rounds,
            "devices": {"count": 2},
            "availability": {
                "model": "table", "file": str(folder / "trace.csv"), **sections.pop("availability", {}),
            },
            "round": {"payload_bits": 1e6, **sections.pop("round", {})},
            "data": {"dataset": "none", "partition": "fedteddi"},
            "learning": {"training": "none", "pretrain": True},
        },
        "test",
    )  # fmt: skip


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
    done = simulation.run(table_config(tmp_path, 3, **sections), tmp_path / "run")
    assert done.reason == "all rounds done"


def test_a_run_that_comes_to_the_end_of_its_trace_says_so(tmp_path):
    with pytest.raises(EdgesimError, match=r"trace\.csv: the trace ends at 100 s, but what follows is asked for"):
        simulation.run(table_config(tmp_path, 300), tmp_path / "run")
    assert read_table(tmp_path / "run", "rounds")["t_end_s"].max() <= 100.0


@pytest.mark.parametrize("protocol", ["synchronous", "asynchronous"])
def test_an_absence_thousands_of_slots_ahead_ends_the_work_of_that_device(tmp_path, protocol):
    """Slots of 1 s, a deadline of 3,600 s, tasks of 3,000 s: a stay ends after 2,000 s on average."""
    (tmp_path / "speed.csv").write_text("device,s_per_sample\n" + "".join(f"{k},300\n" for k in range(8)))
    availability = {"model": "bernoulli", "probability": 0.9995, "slot_s": 1.0, "interruption": "abort"}
    values = {
        "rounds": 4,
        "devices": {"count": 8, "profile": str(tmp_path / "speed.csv")},
        "availability": availability,
        "round": {
            "protocol": protocol, "payload_bits": 1e3, "tmax_s": 3600.0, "admission": "count", "count": 8,
        },
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "pretrain": True},
    }  # fmt: skip
    config = simulation.complete(parse(values, "test"))
    simulation.run(config, tmp_path / "run")
    there = make_world(config, Streams(config.seed)).availability
    computed = read_table(tmp_path / "run", "activities").query("activity == 'compute'")
    computed = computed.query("outcome != 'cancelled'")  # without rounds, by the end of the run
    for row in computed.itertuples():
        slots = np.arange(int(row.t_start_s), int(np.ceil(row.t_start_s + 3000.0)))
        absent = slots[~there.available(np.full(len(slots), row.device), slots.astype(float))]
        assert row.outcome == ("dropped" if len(absent) else "done")
        assert row.t_end_s == pytest.approx(absent[0] if len(absent) else row.t_start_s + 3000.0)
    dropped = computed.query("outcome == 'dropped'")
    assert (dropped["t_end_s"] - dropped["t_start_s"]).max() > 1000.0
    assert "done" in computed["outcome"].tolist()
