"""A run that ends when its model is good enough."""

from dataclasses import replace
from pathlib import Path

import pytest
from stopped_runs import assert_stops_change_nothing
from whole_runs import play

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.learning.learner import TorchLearner

HUNDRED = Path(__file__).parents[1] / "compared" / "hundred-classes.npz"
CONFIG = {
    "rounds": 12,
    "data": {"partition": "dirichlet"},
    "learning": {"pretrain": False},
    "round": {"tmax_s": 0.8, "payload_bits": 1e7},
}
ROUNDS = {"synchronous": {}, "buffered": {"protocol": "buffered", "admission": "count", "count": 4}}


def run(folder, protocol, rounds=12, **ends):
    return play(folder, CONFIG, {"round": ROUNDS[protocol]}, rounds=rounds, **ends).rounds


@pytest.mark.parametrize("protocol", ROUNDS)
def test_the_run_ends_behind_the_first_test_at_the_accuracy_and_is_the_same_until_then(tmp_path, protocol):
    whole = run(tmp_path / "whole", protocol)
    accuracy = float(whole["test_accuracy"].iloc[:4].max())
    last = int((whole["test_accuracy"] >= accuracy).argmax())
    cut = run(tmp_path / "cut", protocol, stop_at_accuracy=accuracy)
    assert len(cut) == last + 1 < len(whole)
    assert cut["test_accuracy"].tolist() == whole["test_accuracy"].tolist()[: last + 1]
    assert read_run(tmp_path / "cut")["reason"].startswith(f"stop_at_accuracy = {accuracy:g}, a test has")
    # With more rounds it stays at its end.
    longer = run(tmp_path / "cut", protocol, rounds=15, stop_at_accuracy=accuracy)
    assert longer["round"].tolist() == cut["round"].tolist()


@pytest.mark.parametrize("protocol", ROUNDS)
def test_several_tests_in_a_row_are_counted_from_the_last_one_below(tmp_path, monkeypatch, protocol):
    """A row of one before a bad test does not count, and a row may begin with the start model."""
    plain = TorchLearner.evaluate

    def rounds_with(accuracies, folder):
        scripted = iter(accuracies + 12 * [0.1])
        monkeypatch.setattr(TorchLearner, "evaluate", lambda *of: replace(plain(*of), accuracy=next(scripted)))
        ends = {"stop_at_accuracy": 0.5, "stop_after_tests": 3}
        return len(run(tmp_path / folder, protocol, 8, **ends))

    assert rounds_with([0.1, 0.6, 0.4, 0.5, 0.7, 0.5, 0.9], "row") == 5
    assert read_run(tmp_path / "row")["reason"] == "stop_at_accuracy = 0.5, 3 tests in a row have it"
    assert rounds_with([0.6, 0.6, 0.4, 0.6, 0.6], "never") == 8


def test_a_row_of_tests_outlives_a_stop(tmp_path, monkeypatch):
    """The checkpoint lies between the two tests whose row ends the run."""
    accuracies = [0.1, 0.6, 0.4, 0.6, 0.7, 0.1, 0.1]
    plain = TorchLearner.evaluate
    monkeypatch.setattr(
        TorchLearner, "evaluate", lambda self, frame: replace(plain(self, frame), accuracy=accuracies[self._round])
    )
    ends = {"rounds": 6, "stop_at_accuracy": 0.5, "stop_after_tests": 2}
    assert_stops_change_nothing(parse(CONFIG | ends, "test"), tmp_path, (4,))
    assert read_table(tmp_path / "stopped", "rounds")["round"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"stop_after_tests": 3}, r"stop_after_tests = 3 needs stop_at_accuracy"),
        ({"learning": {"training": "none"}, "stop_at_accuracy": 0.5}, r"needs learning\.training = 'real', not 'none'"),
    ],
)
def test_tests_in_a_row_need_an_accuracy_and_accuracies_training(values, said):
    with pytest.raises(EdgesimError, match=said):
        parse(values, "test")


def test_a_good_test_counts_though_a_later_one_of_the_same_round_is_worse(tmp_path, monkeypatch):
    """In the last round of a frame, the second model is tested as it is replaced, and then the third."""
    data = {"dataset": str(HUNDRED), "partition": "fedteddi", "samples_per_device": 6}
    plain, scripted = TorchLearner.evaluate, iter([0.1, 0.1, 0.9] + 10 * [0.1])
    monkeypatch.setattr(TorchLearner, "evaluate", lambda *of: replace(plain(*of), accuracy=next(scripted)))
    ends = {"stop_at_accuracy": 0.8, "evaluation": {"every_s": 0.05}, "data": data}
    assert len(run(tmp_path / "run", "synchronous", [3, 3], **ends)) == 3
    assert read_run(tmp_path / "run")["reason"] == "stop_at_accuracy = 0.8, a test has 0.9"


def test_a_start_model_at_the_accuracy_makes_no_round(tmp_path):
    with pytest.raises(EdgesimError, match=r"no .*round.*: stop_at_accuracy = 0\.001, a test has"):
        run(tmp_path / "run", "synchronous", stop_at_accuracy=0.001)
