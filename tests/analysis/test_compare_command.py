"""``edgesim compare`` as typed: its sentences, its tables and its files."""

import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from edgesim.cli import app
from edgesim.terminal.sentences import sentence
from edgesim.terminal.table_files import latex, markdown

ROUNDS = {"random": [30, 31, 32, 33, 34], "fedteddi": [4, 16, 5, 17, 9], "oort": [30, 33, 29, 34, 36]}


@pytest.fixture(scope="module")
def study(tmp_path_factory, study_writer):
    runs = [({"policy": policy}, seed, "finished", [0.6] * (needed - 1) + [0.8])
            for policy, of in ROUNDS.items() for seed, needed in enumerate(of)]  # fmt: skip
    runs[-1] = (*runs[-1][:3], [0.6] * 60)
    return study_writer(tmp_path_factory.mktemp("typed") / "study", runs)


def edgesim(*arguments) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "2000"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_the_sentence_and_the_files_say_the_same(study, tmp_path):
    files = [tmp_path / f"table.{kind}" for kind in ("csv", "md", "tex")]
    options = ["--csv", files[0], "--markdown", files[1], "--latex", files[2]]
    status, output = edgesim("compare", study, "--metric", "rounds_to_target", "--by", "policy", *options)
    assert status == 0
    table = pd.read_csv(files[0])
    facts = f"(difference -21.8, 95 % [-29, -14.6], p = {table['p_holm'][0]:.2g} corrected, n = 5)"
    assert f"fedteddi needs fewer rounds than random {facts}." in output
    assert (
        "rounds_to_target of oort and random cannot be told apart with 5 seeds (fewer in 1, more in 3 of 5; in 1 a run"
        in output
    )
    assert "No analysis of variance of rounds_to_target: some runs never reached the target." in output
    assert table[["choice", "against", "never"]].to_numpy().tolist() == [
        ["fedteddi", "random", 0],
        ["oort", "random", 1],
    ]
    assert (
        files[1].read_text().splitlines()[2].startswith("| rounds_to_target | fedteddi | random | fewer | 5 | -21.8 |")
    )
    assert r"rounds\_to\_target & fedteddi & random & fewer & 5 & -21.8 &" in files[2].read_text()


def test_the_seeds_that_a_given_difference_takes_are_told(study):
    options = ["--metric", "final_accuracy", "--by", "policy", "--reference", "random", "--difference", "0.01"]
    status, output = edgesim("compare", study, *options)
    assert status == 0
    assert "to tell the difference of 0.01 at that level" in output
    assert re.search(
        "final_accuracy of oort and random cannot be told apart .*would do for a difference of 0.01", output
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--metric", "rounds_to_target", "--by", "lr"], "--by lr: the runs do not differ in a knob of this name"),
        (["--metric", "nothing", "--by", "policy"], "--metric nothing: no run has it"),
        (
            ["--metric", "arrived", "--by", "policy", "--difference", "0"],
            "--difference 0: expected a finite difference other",
        ),
        (["--metric", "arrived", "--by", "policy", "--difference", "nan"], "--difference nan: expected a finite"),
        (
            ["--metric", "arrived", "--by", "policy", "--csv", "no/such/table.csv"],
            "no/such/table.csv: cannot be written",
        ),
        (["--metric", "arrived", "--by", "policy", "--latex", "."], ".: cannot be written: Is a directory"),
        (
            ["--metric", "rounds_to_target", "--by", "policy", "--target", "75"],
            "--target 75: expected an accuracy above 0 and at most 1",
        ),
        (
            ["--metric", "seconds_to_target", "--by", "policy", "--target", "nan"],
            "--target nan: expected an accuracy above 0 and at most 1",
        ),
    ],
)
def test_bad_input_is_one_line(study, arguments, told):
    status, output = edgesim("compare", study, *arguments)
    assert status == 2
    (line,) = output.splitlines()
    assert line.startswith("error: ")
    assert told in line


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    status, output = edgesim("compare", tmp_path, "--metric", "arrived", "--by", "policy")
    assert status == 2
    assert "not a run folder" in output


FACTS = {"choice": "fedteddi", "against": "random", "measure": "seconds_to_target", "pairs": 12, "never": 0,
         "below": 12, "above": 0, "difference": -17.4, "low": -22.0, "high": -13.0, "p_holm": 4e-4, "seeds_needed": 9.0,
         "reading": "sooner"}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "the target sooner than random (difference -17.4, 95 % [-22, -13], p = 0.0004 corrected, n = 12)."),
        ({"reading": "level"}, "fedteddi and random are level in seconds_to_target (difference -17.4,"),
        ({"reading": "not distinguishable", "pairs": 5, "seeds_needed": 22.0},
         "seconds_to_target of fedteddi and random cannot be told apart with 5 seeds (difference"),
        ({"reading": "not distinguishable", "seeds_needed": float("inf")}, "; more than 100,000 would do."),
        ({"reading": "sooner", "never": 2, "below": 11, "above": 1},
         "the target sooner than random (sooner in 11, later in 1 of 12; in 2 a run never got there; sign test"),
        ({"measure": "energy_j", "reading": "lower"}, "fedteddi has a lower energy_j than random (difference"),
    ],
)  # fmt: skip
def test_each_reading_has_its_sentence(changed, expected):
    assert expected in sentence(FACTS | changed)


def test_about_so_many_seeds_would_do():
    told = sentence(FACTS | {"reading": "not distinguishable", "pairs": 5, "seeds_needed": 22.0}, "tmax_s = 1", 5.0)
    assert told.startswith("At tmax_s = 1: seconds_to_target of")
    assert told.endswith("n = 5); about 22 would do for a difference of 5.")


def test_signs_of_markdown_and_latex_are_escaped():
    assert markdown(["a|b"], [["1"]]) == "| a\\|b |\n| --- |\n| 1 |\n"
    assert r"95 \% & \textless{}\textbackslash{}x\_1 \\" in latex(["a", "b"], [["95 %", r"<\x_1"]])
