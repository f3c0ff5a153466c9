import re

import pytest
from edited_runs import write_plan

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.plots.gallery import draw

POLICIES = [{"policy": "random", "tmax_s": 1.0}, {"policy": "fedteddi", "tmax_s": 1.0}]


def stems(files):
    assert all(path.is_file() for path in files)
    names = {path.stem for path in files}
    assert {path.name for path in files} == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    return names


ONE = {"gantt", "band_use", "partition", "cell_map"}
ALWAYS = {"delay_cdf", "energy", "waste-seconds", "waste-bits", "waste-joules"}
LEARNT = {"accuracy_rounds", "accuracy_seconds"}
SEVERAL = {"scheduled", "fairness", "final_accuracy"}
OF_STUDY = {"rounds_to_target", "differences-policy", "difference_rounds-policy", "difference_seconds-policy"}


@pytest.mark.usefixtures("figures_as_text")
@pytest.mark.parametrize(
    ("drawn", "names"),
    [
        (lambda out, run, study: draw([run(out / "run")], out / "figures", round=2), ONE | ALWAYS | LEARNT),
        (lambda out, run, study: draw([run(out / "run", evaluated=False)], out / "figures"), ONE | ALWAYS),
        (
            lambda out, run, study: draw(
                [run(out / policy, policy=policy) for policy in ("random", "fedteddi")], out / "figures"
            ),
            ALWAYS | LEARNT | SEVERAL,
        ),
        (
            lambda out, run, study: draw([study(out / "study", POLICIES)], out / "figures"),
            ONE | ALWAYS | LEARNT | SEVERAL | OF_STUDY,
        ),
    ],
    ids=["run", "timing-only run", "several runs", "study with a target"],
)
@pytest.mark.whole_family
def test_what_runs_have_says_which_figures_they_get(tmp_path, run_writer, study_writer, drawn, names):
    assert stems(drawn(tmp_path, run_writer, study_writer)) == names


@pytest.mark.usefixtures("figures_as_text")
def test_a_timing_grid_gets_heat_maps_apart_for_each_kind_of_delay_knowledge(tmp_path, study_writer):
    known = [{"delay_knowledge": "known", "tmax_s": t, "bandwidth_hz": b} for t in (0.8, 1.0) for b in (1e7, 2e7)]
    planned = [{"delay_knowledge": "planned", "tmax_s": t, "plan_quantile": q} for t in (0.8, 1.0) for q in (0.5, 0.9)]
    study = study_writer(tmp_path / "study", known + planned, seeds=1, target=None, rounds=2)
    drawn = stems(draw([study], tmp_path / "figures"))
    for kind in ("known", "planned"):
        assert {f"heat_map-scheduled-{kind}", f"heat_map-infeasible-share-{kind}"} <= drawn
    assert not {name for name in drawn if name.startswith("accuracy")}


@pytest.mark.slow
def test_a_figure_redrawn_from_the_same_folder_has_the_same_bytes(tmp_path, study_writer):
    """As a vector: `tests/plots/test_style.py` has the other formats."""
    study = study_writer(tmp_path / "study", POLICIES, rounds=3)
    first, again = (draw([study], tmp_path / name, formats=["svg"]) for name in ("first", "again"))
    assert {path.name: path.read_bytes() for path in first} == {path.name: path.read_bytes() for path in again}


def test_failed_runs_of_a_study_are_not_drawn_and_a_study_without_a_finished_run_is_refused(tmp_path):
    entry = {"folder": "r", "knobs": POLICIES[0], "seed": 0, "status": "failed"}
    write_plan(tmp_path, "n", [entry])
    with pytest.raises(EdgesimError, match="no run of the study is finished"):
        draw([tmp_path], tmp_path / "figures")


def test_what_is_no_run_and_no_study_is_refused_in_one_line(tmp_path, run_writer, study_writer):
    run, study = run_writer(tmp_path / "run"), study_writer(tmp_path / "study", POLICIES[:1], seeds=1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    cases = [
        ([], tmp_path / "f", None, "give run folders"),
        ([tmp_path / "nowhere"], tmp_path / "f", None, "nowhere: no such folder"),
        ([tmp_path / "empty"], tmp_path / "f", None, "not a run folder"),
        ([run, study], tmp_path / "f", None, "draw it alone"),
        ([study], tmp_path / "f", 3, "give one run folder"),
        ([run], tmp_path / "f", 99, "no round 99"),
        ([run], tmp_path / "file", None, "file: cannot be made a folder"),
    ]
    for paths, out, number, message in cases:
        with pytest.raises(EdgesimError, match=message) as error:
            draw(paths, out, number)
        assert "\n" not in str(error.value)
        assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("battery", ", which needs devices with batteries; its figures are gantt, "),
        ("accuracy_rounds", ", which needs tests of the model; its figures are "),
        ("heat_map-scheduled", ", which needs a study with two numeric knobs that vary; its figures are "),
        ("gant", ", did you mean 'gantt'? its figures are "),
    ],
)
def test_a_figure_that_a_run_cannot_have_is_refused_with_what_it_needs(tmp_path, run_writer, name, needs):
    run = edgesim.open(run_writer(tmp_path / "run", evaluated=False, rounds=2))
    with pytest.raises(EdgesimError, match=f"has no figure '{name}'{re.escape(needs)}"):
        run.plot(name)
