"""How a config chooses a model of availability, and what recordings must have for a run."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.models import make_availability, resolve_options


def make(model: str, count: int = 5, seed: int = 0, **options: object) -> Availability:
    return make_availability(AvailabilityConfig(model=model, **options), count, Streams(seed))


def test_groups_take_turns_and_overlap_with_the_next():
    # Three groups of 10 s with 4 s of overlap, by hand: group g is there in [10 g, 10 g + 14) of every 30 s.
    model, ids = make("round_robin", 7, groups=3, turn_s=10.0, overlap_s=4.0), np.arange(7)
    there = {0.0: {0, 2}, 3.9: {0, 2}, 4.0: {0}, 10.0: {0, 1}, 14.0: {1}, 24.0: {2}, 30.0: {0, 2}, 63.0: {0, 2}}
    for t, groups in there.items():
        assert {int(k) % 3 for k in ids[model.available(ids, t)]} == groups, t
    assert model.next_available(ids[:3], 24.0).tolist() == [30.0, 40.0, 24.0]
    assert model.available_until(ids[:3], 20.0, 99.0).tolist() == [20.0, 24.0, 34.0]


def test_resolving_writes_out_defaults_and_the_slots_that_hang_on_the_protocol():
    chances = {"if_empty": None, "join_probability": 0.2, "leave_probability": 0.2}
    assert resolve_options("markov", {}, 0.8, True) == {"slots": "rounds", "slot_s": None, **chances}
    assert resolve_options("markov", {}, 0.8, False) == {"slots": None, "slot_s": 0.8, **chances}
    for has_rounds in (True, False):
        found = resolve_options("bernoulli", {"slot_s": 3.0}, 0.8, has_rounds)
        assert (found["slots"], found["slot_s"]) == (None, 3.0)
        assert resolve_options("solar", {}, 0.8, has_rounds)["slot_s"] == 0.8
        assert resolve_options("always", {}, 0.8, has_rounds) == {}
        assert resolve_options("table", {"file": "x.csv"}, 0.8, has_rounds)["after_end"] == "raise"


def test_a_trace_of_fewer_devices_than_the_run_is_refused_and_one_of_more_serves_the_first(tmp_path):
    path = tmp_path / "week.csv"
    path.write_text("device,start_s,end_s\n0,2,3\n2,5,6\n")
    with pytest.raises(EdgesimError, match=r"week\.csv: is a trace of 3 devices, but devices\.count is 4; lower"):
        make("table", 4, file=str(path))
    two = make("table", 2, file=str(path), after_end="absent")
    assert isinstance(two, IntervalTable)
    assert two.device_count == 2
    assert two.next_time_with(1, 4.0) == np.inf
