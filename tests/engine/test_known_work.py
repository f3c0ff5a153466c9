"""Rounds played ahead as arrays beside the same rounds played event by event, to the last bit."""

import pyarrow.parquet as pq
import pytest
from whole_runs import TIMED, play

from edgesim.engine import run_parts
from edgesim.engine.clock import Clock
from edgesim.engine.decisions import ByPolicy
from edgesim.engine.run_parts import RunParts

ROUNDS = 7
TABLES = ("rounds", "activities", "updates", "metrics")
STAYS = {"model": "markov", "leave_probability": 0.4, "join_probability": 0.6, "slot_s": 3.0}
COUNT = {"computes": "selected", "admission": "count", "count": 8, "over_commitment": 1.5, "tmax_s": 12.0,
         "delay_knowledge": "planned", "allocator": "equal_share"}  # fmt: skip
WIRED = {"topology": {"file": "seven-cells", "attach": "nearest"}, "devices": {"count": 80}}
MOVING = WIRED | {"availability": STAYS, "mobility": {"model": "direction", "speed_mps": [30.0, 40.0]}}


def run(folder, knobs, monkeypatch):
    """Tables of a run, and the durations that its policy heard of."""
    heard = []
    monkeypatch.setattr(ByPolicy, "hear", lambda _, report: heard.append(report.feedback.duration_s.tolist()))
    base = {"rounds": ROUNDS, "devices": {"count": 24}, "round": {"tmax_s": 6.0, "payload_bits": 17_881_664.0}}
    played = play(folder, TIMED, base, knobs)
    return {name: pq.read_table(played.folder / f"{name}.parquet") for name in TABLES}, heard


@pytest.mark.whole_family
@pytest.mark.parametrize(
    "knobs",
    [
        {"round": {"close": "deadline", "download_s": 0.4}},
        {"round": COUNT},
        {"round": COUNT, "stop_at_s": 12.3},
        {"round": {**COUNT, "download_s": 0.7}, "availability": STAYS},
        {"round": {"download_s": 0.7}, "availability": {**STAYS, "interruption": "pause"}},
        WIRED | {"round": {**COUNT, "computes": "candidates", "download_s": 0.5}, "availability": STAYS},
        MOVING | {"round": {"tmax_s": 12.0, "close": "deadline"}},
        MOVING | {"round": {**COUNT, "download_s": 0.5, "computes": "candidates"}},
        MOVING | {"round": {"tmax_s": 12.0, "close": "deadline", "payload_bits": 3e8, "allocator": "equal_share"}},
    ],
    ids=["deadline", "count", "stopped", "leaves", "paused", "wired", "moving", "moving by count", "moving slowly"],
)
def test_a_round_played_ahead_is_the_round_played_event_by_event(tmp_path, monkeypatch, knobs):
    ahead, heard = run(tmp_path / "ahead", knobs, monkeypatch)
    monkeypatch.setattr(RunParts, "are_known_ahead", False)
    by_events, heard_by_events = run(tmp_path / "events", knobs, monkeypatch)
    assert heard == heard_by_events
    for name in TABLES:
        assert ahead[name].equals(by_events[name]), name
    assert ahead["activities"].num_rows > 0


def test_a_round_played_ahead_takes_no_event_for_a_device(tmp_path, monkeypatch):
    """A round has its deadline, the arrival that closes it, and its close."""
    made = []

    class Counted(Clock):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(run_parts, "Clock", Counted)
    rows = run(tmp_path, {"round": COUNT}, monkeypatch)[0]["activities"]
    assert rows.num_rows >= ROUNDS * 2 * COUNT["count"]
    assert next(made[0]._eid) == ROUNDS * 3
