"""The server's sleep: it wakes at instants at which what it waits for holds, or says that it cannot."""

import signal
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from whole_runs import TIMED, play, write_rows

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.engine.check_in import check_in
from edgesim.engine.clock import Clock
from edgesim.engine.idle_devices import IdleDevices
from edgesim.engine.report import Totals
from edgesim.traces.availability import Availability
from edgesim.traces.search import Search


@contextmanager
def at_most(seconds):
    """A run that asks for ever at one clock would keep the tests from ending."""

    def give_up(*_):
        raise AssertionError(f"not over after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(folder, rounds, availability, devices=None, **knobs):
    base = {"devices": devices or {"count": 30}, "radio": {"channel": "free-space"}, "round": {"payload_bits": 1e6}}
    return play(folder, TIMED, base, rounds=rounds, availability=availability, round=knobs)


def table(folder, columns, rows, after_end):
    file = write_rows(folder / "trace.csv", columns, rows)
    return {"model": "table", "file": file, "after_end": after_end}


WITHOUT_ROUNDS = {"protocol": "asynchronous", "admission": "count", "count": 1}


@pytest.mark.parametrize("knobs", [{}, WITHOUT_ROUNDS], ids=["rounds", "asynchronous"])
def test_repeated_recordings_of_different_length_and_fractional_times_do_not_stop_the_clock(tmp_path, knobs):
    rows = [(0, 18.8, 23.5, 75.6), (1, 2.7, 8.4, 97.5)]
    trace = table(tmp_path, "device,start_s,end_s,length_s", rows, "wrap")
    with at_most(20):
        played = run(tmp_path / "run", 200, trace, devices={"count": 2}, tmax_s=3.0, **knobs)
    acts = played.activities
    assert played.result.reason == "all rounds done"
    assert set(acts["device"]) == {0, 1}
    for device, start_s, end_s, length_s in rows:
        mine = acts[acts["device"] == device]
        begun_s, ended_s = mine["t_start_s"].to_numpy() % length_s, mine["t_end_s"].to_numpy() % length_s
        assert np.all((begun_s >= start_s) & (ended_s <= end_s + 1e-9))


class Contradicts(Availability):
    """Says that nobody is there, and that all will be at the very instant that is asked about."""

    def available(self, ids, t_s):
        return np.zeros(len(ids), dtype=bool)

    def available_until(self, ids, t_s, horizon_s=np.inf):
        return np.broadcast_to(t_s, len(ids))

    def next_available(self, ids, t_s):
        return np.broadcast_to(t_s, len(ids))

    def next_time_with(self, count, t_s):
        return t_s

    def next_change(self, t_s):
        return np.inf


def test_a_server_that_would_wake_without_progress_says_what_it_asked_for():
    config = parse({"devices": {"count": 3}, "round": {"min_candidates": 2}}, "test")

    class World:
        availability, search = Contradicts(), Search()

    World.config = config
    clock = Clock(7.25)
    parts = SimpleNamespace(clock=clock, world=World, batteries=None, report=SimpleNamespace(totals=Totals()))
    process = clock.process(check_in(parts, lambda: None))
    said = r"availability: asked at 7\.25 s for the next time with 2 devices available, .* answers 7\.25 s"
    with at_most(10), pytest.raises(EdgesimError, match=said):
        clock.run(process)
    idle = IdleDevices(Contradicts(), None, np.ones(3, dtype=bool))
    with pytest.raises(EdgesimError, match=r"asked at 7\.25 s for the next time with device 0, which is not now"):
        idle.next_back_s(7.25)


@pytest.mark.parametrize(("tmax_s", "slot_s"), [(0.7, 0.7), (0.3, 0.1), (0.6, 0.2), (1.2, 0.4), (0.7, 2.1)])
def test_no_round_opens_some_last_bits_before_the_edge_at_which_its_devices_leave(tmp_path, tmax_s, slot_s):
    half = {"model": "bernoulli", "probability": 0.5, "slot_s": slot_s}
    knobs = {"tmax_s": tmax_s, "close": "deadline", "computes": "selected", "admission": "count", "count": 3}
    played = run(tmp_path / "run", 200, half, devices={"count": 12}, **knobs, download_s=0.05)
    rounds, acts = played.rounds, played.activities
    # To the clock's rounding all rounds are one deadline long, and where slots are as long, they are the same numbers.
    start_s = rounds["t_start_s"].to_numpy()
    assert start_s == pytest.approx(np.arange(200) * tmax_s, abs=1e-9)
    if tmax_s == slot_s:
        assert start_s.tolist() == [k * tmax_s for k in range(200)]
    # Everybody at work is there for a slot's length from an edge on, at which each of these rounds begins.
    began_s = acts["round"].map(dict(zip(rounds["round"], start_s, strict=True)))
    lost = acts[acts["outcome"] == "dropped"]
    assert ((lost["t_end_s"] - began_s[lost.index]) > 0.99 * min(slot_s, tmax_s)).all()
    assert rounds["selected"].sum() > 500


def test_who_stays_until_the_deadline_up_to_rounding_stays_for_the_round(tmp_path):
    """A device too slow to be taken leaves a last bit before the deadline at which all work is broken off."""
    before_s = float(np.nextafter(1.0, 0.0))
    trace = table(tmp_path, "device,start_s,end_s", [(0, 0, before_s), (1, 0, 9)], "absent")
    profile = write_rows(tmp_path / "speed.csv", "device,s_per_sample", [(0, 300), (1, 0.001)])
    acts = run(tmp_path / "run", 1, trace, devices={"count": 2, "profile": profile}).activities
    slow = acts.query("device == 0")
    assert slow[["activity", "t_end_s", "outcome"]].to_numpy().tolist() == [["compute", 1.0, "unscheduled"]]
