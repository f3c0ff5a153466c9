"""Studies from a TOML file: the same runs as the same study in Python, and each fault in one line."""

import json
import tomllib

import pytest
from typed_commands import refused
from typer.testing import CliRunner

import edgesim
from edgesim.commands.cli import app
from edgesim.errors import EdgesimError
from edgesim.studies.plan_file import read_plan
from edgesim.studies.study_table import parse_axes, runs_of, study_table, typed_seeds

WORLD = """\
rounds = 2
data = { dataset = "none", partition = "fedteddi" }
learning = { training = "none", pretrain = true }
round.payload_bits = 1e6
devices.count = 5
"""
STUDY = """
[study]
seeds = [3, 7]
reference = "best-channel"
[study.axes]
selection.policy = ["random", "best-channel"]
"round.tmax_s" = [0.5, 1.0]
[study.labels.band]
narrow = { radio.bandwidth_hz = 1e6 }
wide = { radio.bandwidth_hz = 2e7, devices.radius_m = 100.0 }
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(tmp_path, text, name="study.toml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_runs_of_a_file_are_those_of_the_same_grids_in_python(tmp_path, studies_here):
    base = tomllib.loads(WORLD)
    axes = {"selection.policy": ["random", "best-channel"], "round.tmax_s": [0.5, 1.0]}
    bands = {"narrow": {"radio": {"bandwidth_hz": 1e6}}, "wide": {"radio": {"bandwidth_hz": 2e7}}}
    bands["wide"]["devices"] = {"count": 5, "radius_m": 100.0}
    expected = [
        run for band, tables in bands.items() for run in edgesim.grid(base | tables, axes, [3, 7], None, {"band": band})
    ]
    done = edgesim.study(write(tmp_path, WORLD + STUDY), jobs=1, quiet=True)
    assert done.folder.as_posix() == "runs/study"
    assert (len(done.runs), done.plan.reference) == (16, "best-channel")
    assert read_plan(done.folder).runs == expected


def test_what_is_given_beside_the_file_replaces_what_it_has(tmp_path, studies_here):
    path = write(tmp_path, WORLD + STUDY)
    done = edgesim.study(
        path, {"round.tmax_s": [0.7]}, 1, "out", reference="random", set=["rounds=1"], jobs=1, quiet=True
    )
    assert {*done.runs} == {
        f"{band}-{policy}-tmax0.7-s0" for band in ("narrow", "wide") for policy in ("random", "best-channel")
    }
    assert done.plan.reference == "random"
    assert {run.config.rounds for run in read_plan(done.folder).runs} == {1}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seeds = [3, 7]", "", "study.seeds: are missing; expected a number of seeds"),
        ("seeds = [3, 7]", "seeds = [3, 3]", "study.seeds: 3 is given twice"),
        ("rounds = 2", "rounds = 2\nseed = 4", "seed: study.seeds gives the seeds already"),
        ("selection.policy", "seed = [1]\nselection.policy", "study.axes.seed: study.seeds gives the seeds already"),
        ("reference", "referense", "unknown key 'study.referense', did you mean 'study.reference'?"),
        ('"round.tmax_s"', '"round.tmx_s"', "run narrow-random-tmx0.5-s3: unknown key 'round.tmx_s', did you mean"),
        ("selection.policy", "selection.polcy", "unknown key 'selection.polcy', did you mean 'selection.policy'?"),
        ("[0.5, 1.0]", "[0.5, 0.5]", "axis round.tmax_s: 0.5 is given twice"),
        ("[0.5, 1.0]", "0.5", "axis round.tmax_s: expected a list of values (got 0.5)"),
        ("radius_m", "radus_m", "run wide-random-tmax0.5-s3: unknown key 'devices.radus_m', did you mean"),
        (
            '= "best-channel"',
            '= "nosuch"',
            "study.reference: expected one of the study's policies, random, best-channel (got 'n",
        ),
        ("narrow = {", "narrow = 3 # {", "study.labels.band.narrow: input should be a valid dictionary (got 3)"),
    ],
)
def test_a_fault_of_a_file_is_one_line_that_names_file_and_key(tmp_path, old, new, words):
    path = write(tmp_path, (WORLD + STUDY).replace(old, new, 1))
    with pytest.raises(EdgesimError) as caught:
        edgesim.study(path, jobs=1, quiet=True)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_setting_beside_the_file_cannot_make_two_labels_one(tmp_path):
    text = (WORLD + STUDY).replace(", devices.radius_m = 100.0", "")
    with pytest.raises(EdgesimError, match=r"radio\.bandwidth_hz distinguishes band narrow, wide"):
        edgesim.study(write(tmp_path, text), set=["radio.bandwidth_hz=3e6"], jobs=1, quiet=True)


def test_a_file_with_a_study_is_no_run(tmp_path):
    path = write(tmp_path, WORLD + STUDY)
    with pytest.raises(EdgesimError, match=r"study\.toml: \[study\] makes this a study, not a run"):
        edgesim.run(path)


def test_code_of_the_users_own_is_refused_before_it_is_imported(tmp_path):
    (tmp_path / "own.py").write_text("raise SystemExit('imported')\n")
    path = write(tmp_path, WORLD + STUDY.replace('"random",', '"own.Policy",'))
    with pytest.raises(EdgesimError, match=r"names code outside edgesim, selection\.policy = 'own\.Policy'"):
        edgesim.study(path, jobs=1, quiet=True, user_code=False)


def answer(*words):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.mark.slow
def test_the_command_runs_a_file_and_any_config_beside_axes_and_resumes_both(tmp_path):
    study, plain = write(tmp_path, WORLD + STUDY), write(tmp_path, WORLD, "plain.toml")
    first = answer("study", "run", study, "--jobs", 1, "--format", "svg")
    assert first.exit_code == 0, first.output
    assert "Differences to narrow" in first.output
    assert {file.suffix for file in (tmp_path / "runs/study/plots").iterdir()} == {".svg", ".json"}
    again = answer("study", "run", study, "--jobs", 1, "--format", "svg")
    assert "16 of 16 runs reused" in again.output
    folder = answer("study", "run", "runs/study")
    assert (folder.exit_code, "16 finished" in folder.output) == (0, True)
    beside = answer(
        "study", "run", plain, "--axis", "selection.policy=random,best-channel", "--seeds", "0,4", "--out", "o"
    )
    assert beside.exit_code == 0, beside.output
    assert [run["folder"] for run in json.loads((tmp_path / "o/plan.json").read_text())["runs"]] == [
        "random-s0", "random-s4", "best-channel-s0", "best-channel-s4"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("made --seeds 2", "--seeds: is for a TOML file, and made is none"),
        ("made --fresh", "--fresh: is for a TOML file, and made is none"),
        ("absent.toml --axis rounds=1", "absent.toml: no such file or folder"),
        ("plain.toml --axis round.tmax_s", "--axis round.tmax_s: expected KEY=VALUE,VALUE,..."),
        ("plain.toml --axis rounds=1,2 --axis rounds=3", "--axis rounds=3: rounds is given twice"),
        ("plain.toml --axis rounds=1 --seeds 3,3", "--seeds: expected a number of seeds, such as 5"),
        (
            "plain.toml --axis selection.policy=fedcs,random --reference oort",
            "--reference: expected one of the study's policies, fedcs, random (got 'oort')",
        ),
    ],
)
def test_a_fault_of_the_command_is_one_line(tmp_path, words, line):
    write(tmp_path, WORLD, "plain.toml")
    (tmp_path / "made").mkdir()
    assert line in refused("study", "run", *words.split())
    assert not (tmp_path / "runs").exists()


def test_the_study_to_start_from_is_one(tmp_path):
    assert answer("study", "new", "mine.toml").exit_code == 0
    values = tomllib.loads((tmp_path / "mine.toml").read_text())
    runs = runs_of(values, study_table(values, "mine.toml"))
    assert [run.folder for run in runs][::6] == ["random-tmax0.5-s0", "fedteddi-tmax0.5-s0"]
    assert refused("study", "new", "mine.toml") == "error: mine.toml: is there already; choose another name"


@pytest.mark.slow
def test_the_study_to_start_from_leaves_policies_a_choice_that_shows(tmp_path):
    answer("study", "new", "mine.toml")
    table = edgesim.study("mine.toml", seeds=1, jobs=2, quiet=True).table().set_index(["policy", "tmax_s"])
    assert table.loc["random", "scheduled"].tolist() == pytest.approx([4, 11], abs=1)
    gain = table.loc["fedteddi", "final_accuracy"] - table.loc["random", "final_accuracy"]
    assert (gain > 0.04).all()


def test_typed_axes_and_seeds():
    assert parse_axes(["a.b=1,2.5,true,x", "c=half"]) == {"a.b": [1, 2.5, True, "x"], "c": ["half"]}
    assert (typed_seeds("5"), typed_seeds("3,7")) == (5, [3, 7])
