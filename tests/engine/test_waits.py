"""Waits for devices that come late, too late or for too short a time: a run goes on, or it ends with a line."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from edgesim import simulation
from edgesim.cli import app
from edgesim.config import YEAR_S
from edgesim.config_file import parse
from edgesim.devices.battery import Batteries
from edgesim.engine.check_in import next_time_with
from edgesim.errors import EdgesimError
from edgesim.runs.records import read_run, read_table

WITHOUT_ROUNDS = {"protocol": "buffered", "admission": "count", "count": 2, "protocol_options": {"buffer": 2}}


def run(folder: Path, availability: dict, rounds: int = 4, devices: int = 2, **knobs):
    values = {
        "seed": 3,
        "rounds": rounds,
        "devices": {"count": devices},
        "availability": availability,
        "round": {"payload_bits": 1e6, "tmax_s": 1.0, **knobs},
        "data": {"dataset": "none"},
        "learning": {"training": "none"},
    }
    return simulation.run(parse(values, "test"), folder)


def twice(folder: Path, gap_s: float) -> dict:
    """Presence of two devices for 1.2 s, and again for 20 s after a gap."""
    rows = "".join(f"{k},0,1.2\n{k},{gap_s},{gap_s + 20}\n" for k in range(2))
    (folder / "trace.csv").write_text(f"device,start_s,end_s\n{rows}")
    return {"model": "table", "file": str(folder / "trace.csv"), "after_end": "absent"}


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
    result = run(tmp_path / "run", twice(tmp_path, gap_s) | search, rounds=12, **knobs)
    rounds = read_table(tmp_path / "run", "rounds")
    assert result.status == "finished"
    if comes:
        assert result.reason == "all rounds done"
        assert rounds["t_end_s"].iloc[-1] > gap_s
    else:
        assert "ever available again, as far as was searched" in result.reason
        assert "availability.search_s" in result.reason
        assert 1 <= len(rounds) < 12
        assert rounds["t_end_s"].iloc[-1] < gap_s


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


def test_charged_devices_that_are_never_there_together_within_the_limit_never_come():
    class Alternating:
        def available(self, ids, t_s):
            return np.floor(t_s) % 2 == ids

        def next_available(self, ids, t_s):
            return np.where(np.floor(t_s) % 2 == ids, t_s, np.floor(t_s) + 1)

    batteries = Batteries(1.0, 0.5, 1.0, np.ones(2), np.zeros(2), np.zeros(2))
    assert next_time_with(2, Alternating(), batteries, np.arange(2), 0.0, 30.0) == np.inf
    assert next_time_with(1, Alternating(), batteries, np.arange(2), 0.0, 30.0) == 0.0


def test_tasks_that_are_all_lost_end_the_run_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr("edgesim.engine.unsynchronised.LOST_LIMIT", 100)
    blinks = {"model": "periodic", "period_s": 1.0, "on_s": 1e-4}
    with pytest.raises(EdgesimError, match="121 tasks ended without an update, since the devices left or had no char"):
        run(tmp_path / "run", blinks, **WITHOUT_ROUNDS | {"count": 1})


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
        ({"model": "periodic", "period_s": 1e-6, "on_s": 1e-6}, "expected a recording that begins again no more than"),
    ],
)
def test_availability_that_changes_millions_of_times_in_a_round_is_refused_at_the_door(tmp_path, model, said):
    with pytest.raises(EdgesimError, match=said):
        run(tmp_path / "run", model)
    assert not (tmp_path / "run").exists()


def test_a_long_search_is_a_line_of_progress_without_a_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgesim.traces.search._SECONDS_BEFORE_WORDS", 0.0)
    monkeypatch.setattr("edgesim.terminal.progress._SECONDS_BEFORE_LINES", 0.0)
    Path("run.toml").write_text(
        "rounds = 1\n"
        'availability = { model = "bernoulli", probability = 1e-4, slot_s = 1.0 }\n'
        "[devices]\ncount = 1\n"
        "[round]\npayload_bits = 1e6\ntmax_s = 1.0\n"
        '[data]\ndataset = "none"\n[learning]\ntraining = "none"\n'
    )
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    result = CliRunner().invoke(app, ["run", "run.toml"])
    assert result.exit_code == 0, result.output
    assert "looking for 1 devices available, at " in result.stderr
