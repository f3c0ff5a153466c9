"""Absences: the complement of what an availability answers at any instant."""

import numpy as np
import pandas as pd
import pytest
from whole_runs import TIMED, play

from edgesim.config import AvailabilityConfig
from edgesim.folder.rows_file import ABSENCES
from edgesim.streams import Streams
from edgesim.traces import absences as module
from edgesim.traces.absences import absences
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.models import make_availability, resolve_options

END_S = 97.3
MODELS = {
    "round_robin": {"turn_s": 4.0, "overlap_s": 1.0},
    "renewal": {"sessions_per_week": 12_000.0, "online_share": 0.5, "rhythm": 0.0, "length_s": 300.0},
    "markov": {"slot_s": 1.5},
    "bernoulli": {"slots": "rounds", "probability": 0.6},
    "always": {},
}


def made(name):
    config = AvailabilityConfig.model_validate({"model": name, **MODELS[name]})
    config = config.with_options(resolve_options(name, config.options, 1.0, True))
    found = make_availability(config, 9, Streams(3), END_S)
    if isinstance(found, ByRounds):
        for t_s in np.cumsum([0.0, *np.linspace(0.5, 2.0, 60)]):
            found.begin_slot(float(t_s))
    return found


@pytest.mark.parametrize("name", MODELS)
def test_at_any_instant_the_devices_in_a_span_are_those_that_are_not_available(name):
    availability, ids = made(name), np.arange(9)
    found = absences(availability, 9, END_S)
    assert found is not None
    assert (found.t_start_s < found.t_end_s).all()
    assert (np.lexsort((found.t_start_s, found.device)) == np.arange(len(found.device))).all()
    assert (found.t_end_s <= END_S).all()
    seen = 0
    for t_s in np.random.default_rng(0).uniform(0, END_S, 300):
        inside = found.device[(found.t_start_s <= t_s) & (t_s < found.t_end_s)]
        absent = ids[~availability.available(ids, t_s)]
        assert inside.tolist() == absent.tolist(), t_s
        seen += len(absent)
    assert (seen == 0) == (name == "always")


def test_what_would_take_long_to_find_is_not_looked_for(monkeypatch):
    monkeypatch.setattr(module, "MOST_DRAWS", 100)
    monkeypatch.setattr(module, "_MOST_STAYS", 3)
    assert all(absences(made(name), 9, END_S) is None for name in ("markov", "bernoulli", "renewal"))


def test_a_device_whose_recording_has_no_later_period_is_absent_until_the_run_ends(tmp_path):
    """Where nothing is known of what follows the recording (``after_end = "raise"``), the run asks no further."""
    periods = {"device": [0, 0, 1, 1], "start_s": [0.0, 6.0, 0.0, 6.0], "end_s": [4.0, 9.0, 4.0, 7.0]}
    pd.DataFrame(periods).to_csv(tmp_path / "periods.csv", index=False)
    config = {
        "rounds": 6,
        "devices": {"count": 2},
        "availability": {"model": "table", "file": str(tmp_path / "periods.csv"), "after_end": "raise"},
        "round": {"payload_bits": 1e6, "close": "deadline"},
    }
    found = ABSENCES.read(play(tmp_path / "run", TIMED, config).folder)
    assert found is not None
    assert found.to_numpy().tolist() == [[0, 4, 6], [1, 4, 6], [1, 7, 8]]
