"""Formats that do not exist, folders that cannot be written and figures that a run lacks, where users ask for them."""

import pytest
from typed_commands import edgesim_lines

import edgesim
from edgesim.analysis.runs import runs_of
from edgesim.base.errors import EdgesimError
from edgesim.plots import gallery
from edgesim.plots.accuracy import draw_accuracy
from edgesim.plots.final_accuracy import draw_final_accuracy
from edgesim.plots.groups import panels_of
from edgesim.plots.training_loss import draw_training_loss

KNOWN = ": expected one or several of png, svg, pdf, separated by commas (got 'png,xyz')"


@pytest.fixture
def folders(tmp_path, monkeypatch, run_writer, study_writer):
    """A working folder with an untrained run, a study of one run, a recording and a config."""
    monkeypatch.chdir(tmp_path)
    run_writer(tmp_path / "run", rounds=2, evaluated=False)
    study_writer(tmp_path / "study", [{"policy": "random", "tmax_s": 1.0}], seeds=1, rounds=2)
    (tmp_path / "seen.csv").write_text("device,start_s,end_s,length_s\n0,0,10,20\n")
    (tmp_path / "run.toml").write_text("seed = 1\n")
    return tmp_path


def typed(words):
    """Refuses as a command does that prints one line."""
    status, output = edgesim_lines(*words.split())
    assert status == 2
    (line,) = output.splitlines()
    raise EdgesimError(line.removeprefix("error: "))


TUNED = "tune run.toml --knob round.tmax_s=0.5:1 --objective final-accuracy"


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda: typed("plot run --format png,xyz"), "--format"),
        (lambda: typed("plot run.toml --drift --format png,xyz"), "--format"),
        (lambda: typed("trace show seen.csv --figure-format png,xyz"), "--figure-format"),
        (lambda: typed(f"{TUNED} --format png,xyz"), "--format"),
        (lambda: edgesim.draw("run", format="png,xyz"), "format"),
        (lambda: edgesim.draw("run", format=["png", "xyz"]), "format"),
        (lambda: edgesim.open("run").draw(format="png,xyz"), "format"),
        (lambda: edgesim.open("study").draw(format="png,xyz"), "format"),
        (lambda: edgesim.tune("run.toml", {"round.tmax_s": (0.5, 1)}, "final-accuracy", format="png,xyz"), "format"),
        (lambda: gallery.draw([], "out", formats=["png", "xyz"]), "formats"),
    ],
)
@pytest.mark.whole_family
def test_an_unknown_format_is_refused_by_the_name_of_its_option_or_argument_and_nothing_is_written(folders, ask, name):
    before = {*folders.rglob("*")}
    with pytest.raises(EdgesimError) as refused:
        ask()
    assert str(refused.value) == f"{name}{KNOWN}"
    assert {*folders.rglob("*")} == before


def test_a_scenario_refuses_an_unknown_format_before_its_first_run(drawing_scenario, tmp_path):
    result = drawing_scenario("cells.py", "--quick", "--format", "png,xyz")
    assert result.output.strip().splitlines() == [f"error: --format{KNOWN}"]
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize("command", [["plot", "run"], ["plot", "run.toml", "--drift"], ["trace", "show", "seen.csv"]])
def test_a_command_that_cannot_make_its_folder_of_figures_says_so_in_one_line(command, tmp_path):
    status, output = edgesim_lines(*command, "--out", "seen.csv/figures")
    assert status == 2
    assert output.splitlines()[-1] == "error: seen.csv/figures: cannot be made a folder for figures: Not a directory"
    assert "Traceback" not in output
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("folders")
def test_a_figure_whose_file_cannot_be_written_is_named(tmp_path):
    (tmp_path / "out/gantt.png").mkdir(parents=True)
    with pytest.raises(EdgesimError, match=r"^out/gantt: the figure cannot be written: Is a directory$"):
        edgesim.draw("run", "out")


@pytest.mark.parametrize(
    "draw",
    [draw_final_accuracy, lambda panels: draw_accuracy(panels, "seconds"), draw_training_loss],
)
def test_a_figure_of_what_was_learnt_is_refused_for_an_untrained_run(folders, draw):
    with pytest.raises(EdgesimError, match=r"run: (no model was tested|nothing was trained); expected a run that "):
        draw(panels_of(runs_of([folders / "run"])))
