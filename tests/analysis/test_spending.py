"""Runs of two-second rounds, 3.5e6 bits and 6 J each, whose start model has accuracy 0.5."""

import pytest

from edgesim.analysis.runs import RunFolder, read_study
from edgesim.analysis.spending import accuracy_within, scores, spending
from edgesim.base.errors import EdgesimError


def test_a_test_costs_what_was_spent_before_and_its_model_holds_within_the_last_tenth_of_a_budget(tmp_path, run_writer):
    table = spending(RunFolder(run_writer(tmp_path / "run", [0.6, None, 0.7]), {}, 0))
    assert table["seconds"].tolist() == [0, 2, 6]
    assert table["bits"].tolist() == [0, 3.5e6, 10.5e6]
    assert table["joules"].tolist() == [0, 6, 18]
    assert table["accuracy"].tolist() == [0.5, 0.6, 0.7]
    # The last tenth of 2 s, 1.8 to 2 s, is all at the start model's 0.5; 5.4 to 6 s is at that of 2 s. Of 6.5 s it is
    # 0.15 s at 0.6 and 0.5 s at 0.7; after the last test its model holds.
    for budget, expected in ((2, 0.5), (6, 0.6), (6.5, (0.15 * 0.6 + 0.5 * 0.7) / 0.65), (100, 0.7)):
        assert accuracy_within(table, "seconds", budget) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(EdgesimError, match="metrics has no test_accuracy of round 0"):
        spending(RunFolder(run_writer(tmp_path / "untested", [None], start=None), {}, 0))


STOP = {"stop_at_s": 8.0}


def test_runs_of_a_place_are_scored_at_the_same_seconds_and_at_the_least_bits_and_joules_of_them(
    tmp_path, study_writer
):
    """At 1 MHz a makes four rounds and b two, so that bits and joules are those of two rounds; at 2 MHz a is alone."""
    runs = [
        ({"algorithm": "a", "bandwidth_hz": 1e6}, 0, "finished", [0.6, 0.7, 0.8, 0.9]),
        ({"algorithm": "b", "bandwidth_hz": 1e6}, 0, "finished", [0.55, 0.65]),
        ({"algorithm": "a", "bandwidth_hz": 2e6}, 0, "finished", [0.6, 0.7, 0.8]),
    ]
    study = read_study(study_writer(tmp_path / "study", runs, configs=[STOP] * 3))
    table = scores(study, ["bandwidth_hz"], "algorithm").set_index(["bandwidth_hz", "algorithm", "cost"])
    at_one = table.loc[1e6]
    assert at_one["budget"].xs("a").to_dict() == {"seconds": 8, "bits": 7e6, "joules": 12}
    assert at_one["budget"].xs("b").to_dict() == {"seconds": 8, "bits": 7e6, "joules": 12}
    assert at_one["value"].xs("a").to_dict() == pytest.approx({"seconds": 0.8, "bits": 0.6, "joules": 0.6})
    assert at_one["value"].xs("b").to_dict() == pytest.approx({"seconds": 0.65, "bits": 0.55, "joules": 0.55})
    assert at_one["spent"].xs("a").to_dict() == {"seconds": 8, "bits": 14e6, "joules": 24}
    assert at_one["rounds"].xs("b").tolist() == [2, 2, 2]
    assert table.loc[2e6]["budget"].xs("a").to_dict() == {"seconds": 8, "bits": 10.5e6, "joules": 18}


def test_runs_that_stop_at_different_times_and_runs_without_a_knob_are_refused_in_one_line(tmp_path, study_writer):
    runs = [({"algorithm": name, "bandwidth_hz": 1e6}, 0, "finished", [0.6]) for name in "ab"]
    study = read_study(study_writer(tmp_path / "study", runs, configs=[STOP, {"stop_at_s": 9.0}]))
    with pytest.raises(EdgesimError, match=r"^[^\n]*stop_at_s is 9 for algorithm = b and 8 for others[^\n]*$"):
        scores(study, ["bandwidth_hz"], "algorithm")
    with pytest.raises(EdgesimError, match=r"^[^\n]*run0: has no knob 'tmax_s'; knobs: algorithm, bandwidth_hz$"):
        scores(study, ["tmax_s"], "algorithm")
