"""``edgesim compare`` as typed: its sentences, its tables and its files."""

import io
import json
import re
from hashlib import sha256

import pandas as pd
import pytest
from edited_runs import edit_json
from typed_commands import edgesim_lines as edgesim

from edgesim.tables.sentences import sentence
from edgesim.tables.table_files import latex, markdown

ROUNDS = {"random": [30, 31, 32, 33, 34], "fedteddi": [4, 16, 5, 17, 9], "oort": [30, 33, 29, 34, 36]}


@pytest.fixture(scope="module")
def study(tmp_path_factory, study_writer):
    paths = {policy: [[0.6] * (needed - 1) + [0.8] for needed in of] for policy, of in ROUNDS.items()}
    paths["oort"][-1] = [0.6] * 60
    return study_writer(tmp_path_factory.mktemp("typed") / "study", paths)


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    """A terminal that wraps no line."""
    monkeypatch.setenv("COLUMNS", "2000")


def test_the_sentence_and_all_formats_say_the_same(study):
    typed = ("compare", study, "--metric", "rounds_to_target", "--by", "policy")
    status, output = edgesim(*typed, "--wide")
    assert status == 0
    by_format = {form: edgesim(*typed, "--format", form)[1] for form in ("csv", "json", "markdown", "latex")}
    table = pd.read_csv(io.StringIO(by_format["csv"]))
    pd.testing.assert_frame_equal(pd.DataFrame(json.loads(by_format["json"])), table, check_dtype=False)
    facts = f"(difference -21.8, 95 % [-29, -14.6], p = {table['p_holm'][0]:.2g} corrected, n = 5; one spreads 3.8 "
    facts += "times as much as the other)"
    assert f"fedteddi needs fewer rounds than random {facts}." in output
    assert (
        "the difference of oort and random in rounds_to_target is inconclusive with 5 seeds (ratio 1.12 of times up to "
        "60, " in output
    )
    assert "in 1 a run never reached the target; one spreads 6 times as much as the other); to detect a" in output
    assert "\nx1.12 (to 60): a run of some pair never reached the target" in output
    assert "(60): the ratio of min(t, 60), by" in output
    assert "One choice spreads more than 3 times as much over seeds as the other in rounds_to_target of oort" in output
    assert "below 0.05 among 2 comparisons it takes 7 seeds" in output
    assert "No analysis of variance of rounds_to_target: some runs never reached the target." in output
    assert table[["choice", "against", "never"]].to_numpy().tolist() == [
        ["fedteddi", "random", 0],
        ["oort", "random", 1],
    ]
    assert (
        by_format["markdown"].splitlines()[2].startswith("| rounds_to_target | fedteddi | random | fewer | 5 | -21.8 |")
    )
    assert r"rounds\_to\_target & fedteddi & random & fewer & 5 & -21.8 &" in by_format["latex"]


def test_the_usual_table_fits_100_columns_and_the_wide_one_has_all(study):
    typed = ("compare", study, "--metric", "final_accuracy", "--by", "policy")
    usual, wide = (edgesim(*typed, *more)[1].splitlines()[:4] for more in ((), ("--wide",)))
    assert max(map(len, usual)) <= 100
    assert {"d_z", "d_av", "detect", "seeds", "corrected"} <= {*wide[0].split()} - {"corrected p"}
    assert "d_av" not in usual[0]


def test_choices_that_made_the_same_runs_are_called_identical_and_others_with_the_same_measure_are_not(
    tmp_path, study_writer
):
    """At 0.35 s one policy makes a round more; a quarter of the devices misses the deadline in every round."""
    runs = [
        ({"policy": policy, "tmax_s": tmax_s}, seed, "finished", [0.6] * (3 if (policy, tmax_s) == longer else 2))
        for longer in [("best-channel", 0.35)]
        for policy in ("random", "best-channel")
        for tmax_s in (0.35, 0.5)
        for seed in range(2)
    ]
    folder = study_writer(tmp_path / "study", runs)
    for path in folder.glob("run*/run.json"):
        digest = sha256((path.parent / "activities.parquet").read_bytes()).hexdigest()
        edit_json(path, digests={"activities.parquet": digest})
    typed = ("compare", folder, "--metric", "miss_rate", "--by", "policy", "--within", "tmax_s")
    table = pd.read_csv(io.StringIO(edgesim(*typed, "--format", "csv")[1])).set_index("tmax_s")
    assert table["differing"].tolist() == [0, 0]
    assert table["reading"].tolist() == ["inconclusive", "identical"]
    output = edgesim(*typed)[1]
    assert "At tmax_s = 0.5: best-channel and random made the same runs, with the same miss_rate (n = 2)." in output
    assert "identical: both made the same runs" in output
    measure = "spectral_efficiency_bps_per_hz"
    title, _, rest = edgesim("compare", folder, "--metric", measure, "--within", "tmax_s")[1].partition("tmax_s")
    assert " ".join(title.split()) == f"measure {measure}, against random, pairs 2"
    assert rest.splitlines()[0].split() == ["choice", "reading", "difference", "95", "%", "corrected", "p"]


def test_seeds_are_counted_for_the_difference_that_is_named_or_the_margin_of_equivalence(study):
    """Random's mean is 32 rounds, and its margin of equivalence 3.2."""
    detected = {}
    for option in ("", "5%", "3.2", "0.1"):
        options = ["--metric", "rounds_to_target", "--by", "policy", *(["--detect", option] if option else [])]
        file = io.StringIO(edgesim("compare", study, *options, "--format", "csv")[1])
        detected[option] = pd.read_csv(file).set_index("choice").loc["fedteddi", ["detect", "seeds_needed"]].tolist()
    # One run of oort never got there, so that its times are compared by their ratio.
    output = edgesim("compare", study, *options)[1]
    assert re.search(r"inconclusive .*; to detect a ratio of 1.003 takes (about|more than) [0-9,]+ seeds", output)
    assert detected[""] == detected["3.2"]
    assert [detected[option][0] for option in ("", "5%", "0.1")] == pytest.approx([3.2, 1.6, 0.1])
    assert detected["3.2"][1] < detected["5%"][1] < detected["0.1"][1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--metric rounds_to_targt", "--metric rounds_to_targt: no run has it, did you mean 'rounds_to_target'?"),
        ("--metric zzz --by lr", "--metric zzz: no run has it; known: rounds_to_target, "),
        ("--metric idp_points", "--metric idp_points: no run has it"),
        ("--metric arrived --by polcy",
         "--by polcy: the runs do not differ in a knob of this name, did you mean 'policy'?"),
        ("--metric arrived --within lr", "--within lr: the runs do not differ in a knob of this name"),
        ("--metric arrived --within policy", "--within policy: the runs are compared by it already; leave it"),
        ("--metric arrived --reference 7", "--reference 7: no run has policy = 7; the values are random, fedteddi, "),
        ("--metric arrived --by policy --detect 0", "--detect 0: expected a positive difference such as 0.02, or"),
        ("--metric arrived --by policy --detect nan%", "--detect nan%: expected a positive"),
        ("--metric arrived --by policy --detect much", "--detect much: expected a positive"),
        ("--metric arrived --by policy --format xls", "invalid value for '--format': 'xls' is not one of"),
        ("--metric rounds_to_target --by policy --target 75", "--target 75: expected an accuracy above 0"),
        ("--metric rounds_to_target --by policy --target nan", "--target nan: expected an accuracy above 0"),
    ],
)  # fmt: skip
@pytest.mark.whole_family
def test_bad_input_is_one_line(study, arguments, told):
    status, output = edgesim("compare", study, *arguments.split())
    assert status == 2
    (line,) = output.splitlines()
    assert line.startswith(f"error: {told}")


FACTS = {"choice": "fedteddi", "against": "random", "measure": "seconds_to_target", "pairs": 12, "never": 0,
         "tau": float("nan"), "ratio": float("nan"), "ratio_low": float("nan"), "ratio_high": float("nan"),
         "difference": -17.4, "low": -22.0, "high": -13.0, "p_holm": 4e-4, "detect": 5.0, "seeds_needed": 9.0,
         "unlike_spreads": 1.3, "reading": "sooner"}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "the target sooner than random (difference -17.4, 95 % [-22, -13], p = 0.0004 corrected, n = 12)."),
        ({"reading": "equivalent"}, "fedteddi and random are equivalent in seconds_to_target (difference -17.4,"),
        ({"reading": "inconclusive", "pairs": 5, "seeds_needed": 22.0},
         "the difference of fedteddi and random in seconds_to_target is inconclusive with 5 seeds (difference"),
        ({"reading": "inconclusive", "seeds_needed": float("inf")}, "takes more than 100,000 seeds."),
        ({"reading": "inconclusive", "pairs": 5, "seeds_needed": 22.0},
         "n = 5); to detect a difference of 5 takes about 22 seeds."),
        ({"reading": "sooner", "never": 2, "tau": 60.0, "ratio": 0.51, "ratio_low": 0.4, "ratio_high": 0.65},
         "the target sooner than random (ratio 0.51 of times up to 60, 95 % [0.4, 0.65], p = 0.0004 corrected, n = 12; "
         "in 2 a run never reached the target)."),
        ({"unlike_spreads": 4.21}, "n = 12; one spreads 4.2 times as much as the other)."),
        ({"measure": "energy_j", "reading": "lower"}, "fedteddi has a lower energy_j than random (difference"),
    ],
)  # fmt: skip
def test_each_reading_has_its_sentence(changed, expected):
    assert expected in sentence(FACTS | changed)


def test_signs_of_markdown_and_latex_are_escaped():
    assert markdown(["a|b"], [["1"]]) == "| a\\|b |\n| --- |\n| 1 |\n"
    assert r"95 \% & \textless{}\textbackslash{}x\_1 \\" in latex(["a", "b"], [["95 %", r"<\x_1"]])
