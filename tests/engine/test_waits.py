"""Waits for devices that come late, too late or for too short a time: a run goes on, or it ends with a line."""

from pathlib import Path

import pytest
from whole_runs import TIMED, play, stays

from edgesim.base.errors import EdgesimError
from edgesim.config import YEAR_S
from edgesim.folder.records import read_run

WITHOUT_ROUNDS = {"protocol": "buffered", "admission": "count", "count": 2, "protocol_options": {"buffer": 2}}


def run(folder: Path, availability: dict, rounds=4, devices=2, stop_at_s=None, on_round=lambda _: None, **knobs):
    base = {"seed": 3, "rounds": rounds if stop_at_s is None else None, "stop_at_s": stop_at_s}
    own = {"devices": {"count": devices}, "round": {"payload_bits": 1e6, "tmax_s": 1.0, **knobs}}
    return play(folder, TIMED, base, own, availability=availability, on_round=on_round)


def twice(folder: Path, gap_s: float) -> dict:
    """Presence of two devices for 1.2 s, and again for 20 s after a gap."""
    rows = [(k, start_s, end_s) for k in range(2) for start_s, end_s in ((0, 1.2), (gap_s, gap_s + 20))]
    return stays(folder, *rows, after_end="absent")["availability"]


@pytest.mark.parametrize("knobs", [{"close": "deadline"}, WITHOUT_ROUNDS], ids=["rounds", "no rounds"])
@pytest.mark.parametrize(
    ("gap_s", "search", "comes"),
    [
        (29 * YEAR_S, {}, True),
        (31 * YEAR_S, {}, False),
        (31 * YEAR_S, {"search_s": 1e10}, True),
        (500.0, {"search_s": 400.0}, False),
    ],
)
def test_a_run_waits_as_long_as_it_may_search_and_then_keeps_its_rounds(tmp_path, knobs, gap_s, search, comes):
    played = run(tmp_path / "run", twice(tmp_path, gap_s) | search, rounds=12, **knobs)
    result, rounds = played.result, played.rounds
    assert result.status == "finished"
    if comes:
        assert result.reason == "all rounds done"
        assert rounds["t_end_s"].iloc[-1] > gap_s
    else:
        assert "ever available again, as far as was searched" in result.reason
        assert "availability.search_s" in result.reason
        assert 1 <= len(rounds) < 12
        assert rounds["t_end_s"].iloc[-1] < gap_s


SELDOM = {"model": "bernoulli", "probability": 0.002, "slot_s": 5.0}
ONE_BY_ONE = {"protocol": "asynchronous", "admission": "count", "count": 1}


@pytest.mark.parametrize("knobs", [{"close": "deadline"}, ONE_BY_ONE], ids=["rounds", "no rounds"])
def test_a_run_with_an_end_looks_no_further_and_ends_there(tmp_path, monkeypatch, knobs):
    whole = run(tmp_path / "whole", SELDOM, rounds=100, devices=1, **knobs).rounds
    begin_s = float(whole["t_end_s"].iloc[0])
    stop_at_s, limit = begin_s + 60.0, 20
    later_s = whole["t_end_s"][whole["t_end_s"] > begin_s + 6.0].iloc[0]
    assert later_s > stop_at_s + 3 * limit * 5.0

    def lower(_: object) -> None:
        # A search that went on behind the end would be given up.
        monkeypatch.setattr("edgesim.traces.slots.DRAW_LIMIT", limit)

    played = run(tmp_path / "run", SELDOM, stop_at_s=stop_at_s, devices=1, on_round=lower, **knobs)
    result, end_s = played.result, played.facts["t_end_s"]
    assert (result.status, result.reason[:12], end_s) == ("finished", "stop_at_s = ", stop_at_s + 1e-6)
    expected = whole[whole["t_end_s"] <= stop_at_s]
    assert 0 < len(expected) < 100
    assert played.rounds.equals(expected)


@pytest.mark.parametrize("knobs", [{"close": "deadline"}, ONE_BY_ONE], ids=["rounds", "no rounds"])
@pytest.mark.parametrize("stop_at_s", [None, 1e7])
def test_a_run_whose_search_takes_too_many_steps_ends_and_says_how_far_it_looked(
    tmp_path, monkeypatch, knobs, stop_at_s
):
    whole = run(tmp_path / "whole", SELDOM, rounds=100, devices=1, **knobs).rounds

    def lower(_: object) -> None:
        monkeypatch.setattr("edgesim.traces.slots.DRAW_LIMIT", 100)

    played = run(tmp_path / "run", SELDOM, rounds=100, stop_at_s=stop_at_s, devices=1, on_round=lower, **knobs)
    result, rounds = played.result, played.rounds
    assert result.status == "finished"
    assert "as far as was searched (up to " in result.reason
    assert "since the search took too many steps; raise availability.probability (0.002), or lower" in result.reason
    assert 0 < len(rounds) < 100
    assert rounds.equals(whole.iloc[: len(rounds)])


def test_a_device_for_which_the_search_is_given_up_while_others_go_on_is_noted(tmp_path, monkeypatch):
    chances = {"model": "bernoulli", "probability": [0.002, 0.9], "slot_s": 5.0}
    monkeypatch.setattr("edgesim.traces.slots.DRAW_LIMIT", 50)
    played = run(tmp_path / "run", chances, rounds=20, **ONE_BY_ONE | {"count": 2})
    assert played.result.reason == "all rounds done"
    note = played.facts["notes"]["search"]
    assert note.startswith("devices for which the search for the next time that they are available was given up count")
    assert "of the 30 years of availability.search_s, since the search took too many steps" in note
    other = run(tmp_path / "other", chances | {"probability": 0.9}, rounds=20, **ONE_BY_ONE | {"count": 2})
    assert "search" not in other.facts["notes"]


@pytest.mark.parametrize(
    "model",
    [
        {"model": "bernoulli", "probability": 1e-9, "slot_s": 1.0},
        {"model": "bernoulli", "probability": 1e-9},
        {"model": "markov", "join_probability": 1e-9, "leave_probability": 0.9, "slot_s": 1.0},
        {"model": "solar", "peak": 1e-9, "slot_s": 1.0},
        {"model": "periodic", "period_s": 1e8, "on_s": 1.0},
    ],
    ids=lambda model: f"{model['model']}-{'slot_s' in model}",
)
def test_a_run_in_which_nobody_comes_in_sight_is_an_error_that_names_the_limit(tmp_path, model):
    with pytest.raises(EdgesimError, match=r"^no round was finished: fewer than 1 devices .*availability\.search_s"):
        run(tmp_path / "run", model | {"search_s": 1000.0})
    assert read_run(tmp_path / "run")["status"] == "failed"


def test_tasks_that_are_all_lost_end_the_run_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr("edgesim.engine.unsynchronised.LOST_LIMIT", 100)
    blinks = {"model": "periodic", "period_s": 1.0, "on_s": 1e-4}
    with pytest.raises(EdgesimError, match="121 tasks ended without an update, since the devices left or had no char"):
        # Without the limit the run would go on to its end, and say that no model was made.
        run(tmp_path / "run", blinks, stop_at_s=1000.0, **WITHOUT_ROUNDS | {"count": 1})


@pytest.mark.parametrize("interruption", ["pause", "ignore"])
def test_work_that_extends_over_too_many_stays_ends_the_run_in_a_line(tmp_path, monkeypatch, interruption):
    monkeypatch.setattr("edgesim.engine.interruptions.STAYS_LIMIT", 50)
    blinks = {"model": "periodic", "period_s": 1e-4, "on_s": 5e-5, "interruption": interruption}
    with pytest.raises(EdgesimError, match=r"device \d came and went more than 50 times in one task, up to"):
        run(tmp_path / "run", blinks)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"model": "solar", "slot_s": 1e-6}, "expected slots that change no more than 100,000 times in a round"),
        ({"model": "periodic", "period_s": 1e-6, "on_s": 1e-6}, "expected a recording that is repeated no more than"),
    ],
)
def test_availability_that_changes_millions_of_times_in_a_round_is_refused_at_the_door(tmp_path, model, said):
    with pytest.raises(EdgesimError, match=said):
        run(tmp_path / "run", model)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("tmax_s", [1e-6, 1e-4, 1.0])
def test_no_round_is_so_short_that_the_clock_stands_still(tmp_path, tmax_s):
    """At 9e8 s the clock goes by 1.2e-7 s, and rounds would take 1e-10 s."""
    played = play(
        tmp_path / "run",
        TIMED,
        stays(tmp_path, (0, 900000000, 900000100), (1, 900000000, 900000100)),
        rounds=3,
        devices={"count": 2, "a_s_per_sample": 0.0, "mu_samples_per_s": 1e15},
        radio={"bandwidth_hz": 1e12},
        round={"payload_bits": 1.0, "tmax_s": tmax_s},
    )
    rounds, acts = played.rounds, played.activities
    assert len(rounds) == 3
    assert (rounds["t_end_s"] > rounds["t_start_s"]).all()
    assert (acts["t_end_s"] >= acts["t_start_s"]).all()
