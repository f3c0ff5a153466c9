"""By which knobs run folders without a study are told apart."""

import pytest

from edgesim.analysis.runs import runs_of

ALWAYS = {"model": "always", "interruption": "abort"}
MARKOV = {"model": "markov", "interruption": "abort", "slots": "rounds", "join_probability": 0.2}
FEDAVG = {"name": "fedavg", "server": "own", "compute_cost": "passes", "weights": "samples"}
SCAFFOLD = {"name": "scaffold", "server": "own", "compute_cost": "passes", "option": "II", "derive_control": False}


def knobs(tmp_path, run_writer, *configs):
    folders = [run_writer(tmp_path / str(n), [0.5], config=config) for n, config in enumerate(configs)]
    return [{name: of for name, of in run.knobs.items() if name != "tmax_s"} for run in runs_of(folders)]


@pytest.mark.parametrize(
    ("algorithms", "found"),
    [
        ([FEDAVG, SCAFFOLD], [{"algorithm": "fedavg"}, {"algorithm": "scaffold"}]),
        # Options are knobs where runs of one algorithm differ in them.
        (
            [FEDAVG, SCAFFOLD, SCAFFOLD | {"option": "I"}],
            [{"algorithm": "fedavg"}, *({"algorithm": "scaffold", "option": option} for option in ("II", "I"))],
        ),
        # Another server half makes another algorithm of it, whose options are its own.
        ([SCAFFOLD, SCAFFOLD | {"server": "mifa", "wait": False}], [{"server": "own"}, {"server": "mifa"}]),
        # How computing is charged is no option of an algorithm.
        (
            [SCAFFOLD, FEDAVG | {"compute_cost": "equal"}],
            [{"algorithm": "scaffold", "compute_cost": "passes"}, {"algorithm": "fedavg", "compute_cost": "equal"}],
        ),
    ],
)
def test_runs_of_several_algorithms_are_told_apart_by_names_servers_and_options(
    tmp_path, run_writer, algorithms, found
):
    assert knobs(tmp_path, run_writer, *({"algorithm": one} for one in algorithms)) == found


def test_runs_that_differ_in_participation_are_told_apart_by_the_model_and_one_model_by_its_options(
    tmp_path, run_writer
):
    often = {"availability": MARKOV | {"join_probability": 0.6}}
    found = knobs(tmp_path, run_writer, {"availability": ALWAYS}, {"availability": MARKOV}, often)
    assert [run["availability"] for run in found] == ["always", "markov", "markov"]
    assert [run.get("join_probability") for run in found] == [None, 0.2, 0.6]
    assert all("slots" not in run for run in found)


def test_two_settings_with_the_same_last_part_are_named_by_their_whole_keys(tmp_path, run_writer):
    one = {"availability": {"model": "always"}, "learning": {"model": "mlp"}, "round": {"protocol": "a", "x": 1}}
    other = {"availability": {"model": "always"}, "learning": {"model": "cnn"}, "data": {"model": "y", "x": 2}}
    (first, second) = knobs(tmp_path, run_writer, one, other)
    assert (first["learning.model"], second["learning.model"], second["data.model"]) == ("mlp", "cnn", "y")
    assert (first["round.x"], second["data.x"]) == (1, 2)


def test_settings_that_change_no_result_are_no_knobs(tmp_path, run_writer):
    one = {"data": {"download": True}, "learning": {"workers": 2}, "checkpoint_at": [3]}
    assert knobs(tmp_path, run_writer, one, {"data": {"download": False}}) == [{}, {}]
