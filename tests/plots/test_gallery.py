import re
from pathlib import Path

import pytest
from edited_runs import write_plan

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.plots import gallery
from edgesim.plots.gallery import draw

POLICIES = [{"policy": "random", "tmax_s": 1.0}, {"policy": "fedteddi", "tmax_s": 1.0}]


def stems(files):
    assert all(path.is_file() for path in files)
    names = {path.stem for path in files}
    assert {path.name for path in files} == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    return names


WASTE = {"waste-seconds", "waste-bits", "waste-joules"}


@pytest.mark.usefixtures("figures_as_text")
def test_one_run_gets_its_gantt_chart_classes_delays_energy_waste_and_accuracy(tmp_path, run_writer):
    files = draw([run_writer(tmp_path / "run")], tmp_path / "figures", round=2)
    assert stems(files) == {
        "gantt",
        "band_use",
        "partition",
        "cell_map",
        "delay_cdf",
        "energy",
        "waste-seconds",
        "waste-bits",
        "waste-joules",
        "accuracy_rounds",
        "accuracy_seconds",
    }


@pytest.mark.usefixtures("figures_as_text")
def test_a_timing_only_run_gets_no_accuracy_figure(tmp_path, run_writer):
    files = draw([run_writer(tmp_path / "run", evaluated=False)], tmp_path / "figures")
    assert stems(files) == {"gantt", "band_use", "partition", "cell_map", "delay_cdf", "energy", *WASTE}


@pytest.mark.slow
def test_several_runs_are_drawn_together_by_policy(tmp_path, run_writer):
    folders = [run_writer(tmp_path / policy, policy=policy) for policy in ("random", "fedteddi")]
    files = draw(folders, tmp_path / "figures")
    assert stems(files) == {
        "delay_cdf",
        "scheduled",
        "energy",
        "waste-seconds",
        "waste-bits",
        "waste-joules",
        "fairness",
        "accuracy_rounds",
        "accuracy_seconds",
        "final_accuracy",
    }


@pytest.mark.usefixtures("figures_as_text")
def test_a_study_with_a_target_also_gets_rounds_to_accuracy(tmp_path, study_writer):
    files = draw([study_writer(tmp_path / "study", POLICIES)], tmp_path / "figures")
    assert stems(files) == {
        "gantt",
        "band_use",
        "partition",
        "cell_map",
        "delay_cdf",
        "scheduled",
        "energy",
        *WASTE,
        "fairness",
        "accuracy_rounds",
        "accuracy_seconds",
        "final_accuracy",
        "rounds_to_target",
        "differences-policy",
        "difference_rounds-policy",
        "difference_seconds-policy",
    }


@pytest.mark.slow
def test_a_timing_grid_gets_heat_maps_apart_for_each_kind_of_delay_knowledge(tmp_path, study_writer):
    known = [{"delay_knowledge": "known", "tmax_s": t, "bandwidth_hz": b} for t in (0.8, 1.0) for b in (1e7, 2e7)]
    planned = [{"delay_knowledge": "planned", "tmax_s": t, "plan_quantile": q} for t in (0.8, 1.0) for q in (0.5, 0.9)]
    study = study_writer(tmp_path / "study", known + planned, seeds=1, target=None, rounds=2)
    drawn = stems(draw([study], tmp_path / "figures"))
    for kind in ("known", "planned"):
        assert {f"heat_map-scheduled-{kind}", f"heat_map-infeasible-share-{kind}"} <= drawn
    assert not {name for name in drawn if name.startswith("accuracy")}


@pytest.mark.slow
def test_a_figure_redrawn_from_the_same_folder_has_the_same_bytes(tmp_path, study_writer, run_writer):
    for number, folder in enumerate([study_writer(tmp_path / "study", POLICIES), run_writer(tmp_path / "run")]):
        first = draw([folder], tmp_path / f"first{number}")
        again = draw([folder], tmp_path / f"again{number}")
        assert [path.name for path in first] == [path.name for path in again]
        for one, other in zip(first, again, strict=True):
            assert one.read_bytes() == other.read_bytes(), one.name


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


def test_every_figure_with_a_need_is_one_that_some_run_or_study_has():
    source = Path(gallery.__file__).read_text()
    for name in gallery.NEEDS:
        assert f'"{name}' in source.partition("def draw(")[2], name
