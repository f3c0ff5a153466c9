"""Which algorithms go together and with what, their options, and what a half that answers badly is told."""

import numpy as np
import pytest
from contract import COMBINED, each_pair, make_config, new_learner
from refusals import in_one_line

from edgesim.config_file import parse
from edgesim.learning.algorithms import ALGORITHMS, make_halves
from edgesim.learning.algorithms.records import Sizes
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

SIZES = Sizes(96.0, 3, 8, classes=2, private=96, public=20)


@each_pair
def test_every_option_of_both_halves_is_in_the_complete_config_and_reaches_its_half(pair):
    config = make_config(pair).algorithm
    halves = [ALGORITHMS[half].Options.model_fields.keys() for half in pair if half != "own"]
    # What an update counts is up to the server half alone.
    without = {"weights"} - halves[-1]
    assert config.options.keys() == set().union(*halves) - without
    made = make_halves(config, SIZES, Streams(0))
    for half, answers in zip(pair, made, strict=True):
        own = ALGORITHMS[pair[0] if half == "own" else half].Options.model_fields.keys() - without
        assert {name: getattr(answers.options, name) for name in own} == {name: config.options[name] for name in own}


@pytest.mark.parametrize("local", ALGORITHMS)
def test_halves_that_do_not_go_together_are_refused_with_those_that_do(local):
    for server in ALGORITHMS:
        if server == local or (local, server) in COMBINED:
            continue
        bad_local = "local" not in ALGORITHMS[local].halves
        key, name, half = ("name", local, "local") if bad_local else ("server", server, "server")
        said = rf"^algorithm.{key}: the {half} half of '{name}' cannot be combined with another algorithm; "
        with in_one_line(said) as refusal:
            make_config((local, server))
        named = str(refusal.value).partition("those that can: ")[2].split(", ")
        assert named == [other for other, kind in ALGORITHMS.items() if half in kind.halves]


@each_pair
def test_an_option_of_another_algorithm_is_refused_with_its_owner(pair):
    own = make_config(pair).algorithm.options.keys()
    named = pair[0] if pair[1] == "own" else f"{pair[0]} with server {pair[1]}"
    for owner, kind in ALGORITHMS.items():
        for name in kind.Options.model_fields.keys() - own:
            values = dict(zip(("name", "server"), pair, strict=True)) | {name: 1}
            with in_one_line(rf"^algorithm.{name}: is an option of algorithm .*not of {named!r}") as refusal:
                simulation.complete(parse({"algorithm": values}, "run.toml"))
            assert repr(owner) in str(refusal.value)


def mine(monkeypatch, half, **answers):
    """A config of FedAvg whose half, Local or Server, has other answers, under the name of an author's own."""
    fedavg = ALGORITHMS["fedavg"]
    own = type(f"Mine{half}", (getattr(fedavg, half),), answers)
    monkeypatch.setitem(ALGORITHMS, "mine", type("Mine", (fedavg,), {half: own}))
    return ("mine", "own")


@pytest.mark.parametrize(
    ("method", "answer", "said"),
    [
        ("upload_bits", lambda bits: bits - 1e9, r"returned -9\.99923e\+08 for device \d+"),
        ("download_bits", lambda bits: bits * np.nan, r"returned nan for device \d+"),
        ("upload_bits", lambda bits: bits[:, None], r"returned an array of shape \(\d+, 1\) for \d+ devices"),
    ],
)
@pytest.mark.parametrize("training", ["real", "none"])
def test_bits_that_are_no_number_of_bits_name_the_algorithm_and_the_method(
    method, answer, said, training, tmp_path, monkeypatch
):
    half = "Local" if method == "upload_bits" else "Server"
    bits = getattr(getattr(ALGORITHMS["fedavg"], half), method)
    pair = mine(monkeypatch, half, **{method: lambda *asked: answer(bits(*asked))})
    said = rf"^algorithm 'mine': {method} {said}; expected 0 or more bits for each device$"
    with in_one_line(said):
        simulation.run(make_config(pair, training=training), tmp_path / "run")


def test_a_teacher_that_given_does_not_answer_with_is_one_line_that_names_both(tmp_path, monkeypatch):
    pair = mine(monkeypatch, "Local", teachers=("start", "old"))
    said = r"^algorithm 'mine': teachers names 'old', which given did not return for device \d+ \(got start\)$"
    with in_one_line(said):
        simulation.run(make_config(pair), tmp_path / "run")


@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_a_loss_that_looks_at_features_unasked_is_the_same_line_in_every_back_end(back_end, monkeypatch):
    pair = mine(monkeypatch, "Local", loss=lambda self, step: step.own.features.sum(1))
    learner = new_learner(make_config(pair, back_end=back_end))
    with in_one_line(r"^algorithm.name: its loss uses features; set features = True in"):
        learner.results(learner.open_round(1, 1).start(np.arange(2)))
