"""What is drawn a second time: a figure whose runs, file or code have changed, and no other."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from edited_runs import edit_json
from made_up_runs import write_run
from matplotlib.figure import Figure

from edgesim import scenario
from edgesim.analysis import products
from edgesim.analysis.summary import write_summary
from edgesim.plots.formats import Formats
from edgesim.plots.gallery import draw

GRID = [{"policy": policy, "tmax_s": 1.0} for policy in ("random", "fedteddi")]


@pytest.fixture(scope="module", autouse=True)
def saved() -> Iterator[list[str]]:
    """Stems of the figures that are saved; what lies on disk is a line of text for each."""
    stems: list[str] = []

    def save(figure: Figure, stem: Path, formats: Formats) -> list[Path]:
        stems.append(stem.name)
        stem.parent.mkdir(parents=True, exist_ok=True)
        files = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
        for file in files:
            file.write_text(f"{len(figure.axes)} panels of {file.name}")
        return files

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgesim.plots.album.save", save)
        yield stems


@pytest.fixture
def drawn(saved) -> list[str]:
    """Stems of the figures that the test itself has drawn."""
    saved.clear()
    return saved


@pytest.fixture(scope="module")
def folder(tmp_path_factory, study_writer, saved) -> Path:
    """A study and its figures; no test changes what lies there."""
    folder = tmp_path_factory.mktemp("drawn")
    draw([study_writer(folder / "study", GRID, rounds=3)], folder / "study/plots")
    return folder / "study"


@pytest.fixture
def study(tmp_path, folder) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "study"))


def simulate_again(study: Path) -> None:
    """Put another run in the place of one that is not the study's first."""
    shutil.rmtree(study / "run1-s1")
    write_run(study / "run1-s1", seed=7, policy="fedteddi", rounds=3)


BROKEN = {"energy.svg": 3, "all figures as png, svg": 3}
OF_TARGET = {"accuracy_rounds", "accuracy_seconds", "rounds_to_target", "differences-policy"}
OF_TARGET |= {"difference_rounds-policy", "difference_seconds-policy"}
OF_FIRST_RUN = {"gantt", "band_use", "partition", "cell_map"}
CHANGES: dict[str, tuple[Callable[[Path], object], Callable[[set[str]], set[str]]]] = {
    "nothing": (lambda study: None, lambda shown: set()),
    "the target is another": (lambda study: edit_json(study / "plan.json", target=0.7), lambda shown: OF_TARGET),
    "a figure is gone": (lambda study: (study / "plots/energy.svg").unlink(), lambda shown: {"energy"}),
    "a figure was edited": (lambda study: (study / "plots/energy.svg").write_bytes(b" "), lambda shown: {"energy"}),
    "a note cannot be read": (lambda study: edit_json(study / "plots/made.json", **BROKEN), lambda shown: {"energy"}),
    "no note can be read": (lambda study: (study / "plots/made.json").write_text("[]"), lambda shown: shown),
    "a run has changed": (simulate_again, lambda shown: shown - OF_FIRST_RUN),
}
"""What happens to a study that was drawn, and which of its figures show it."""


@pytest.mark.whole_family
@pytest.mark.parametrize("change", CHANGES)
def test_what_shows_a_change_is_drawn_again_and_nothing_else(study, drawn, change):
    happens, expected = CHANGES[change]
    before = {path: path.read_bytes() for path in draw([study], study / "plots")}
    happens(study)
    draw([study], study / "plots")
    assert set(drawn) == expected({path.stem for path in before})
    assert {path: path.read_bytes() for path in before} == before
    assert {path for path in (study / "plots").iterdir() if path.suffix in (".png", ".svg")} == set(before)


def test_another_round_is_another_chart(tmp_path, run_writer, drawn):
    run = run_writer(tmp_path / "run", rounds=3)
    draw([run], tmp_path / "figures", round=1)
    drawn.clear()
    draw([run], tmp_path / "figures", round=2)
    assert drawn == ["gantt", "band_use"]


def test_another_format_is_drawn_beside_the_files_that_are_there(study, drawn):
    there = draw([study], study / "plots")
    (study / "plots/energy.png").unlink()
    files = draw([study], study / "plots", formats=("png", "pdf"))
    assert {path.suffix for path in files} == {".png", ".pdf"}
    assert len(files) == len(there)
    assert len(drawn) == len(there) / 2
    assert all(path.is_file() for path in (*files, *there))
    drawn.clear()
    assert draw([study], study / "plots", formats=("png", "pdf")) == files
    assert draw([study], study / "plots") == there
    assert not drawn


def test_another_version_of_the_code_draws_all_again(study, drawn, monkeypatch):
    monkeypatch.setattr(products, "_code_digest", lambda: "another")
    all_of_them = draw([study], study / "plots")
    assert {path.stem for path in all_of_them} == set(drawn)


def test_a_scenarios_second_end_reads_no_table_of_its_runs_and_says_the_same(study, monkeypatch, capsys):
    against = [("policy", "random")]
    # As a study does at its end.
    write_summary(study)
    scenario.conclude(study, against)
    first = capsys.readouterr().out

    def refuse(*_):
        raise AssertionError("a run's table is read")

    monkeypatch.setattr("edgesim.analysis.runs.read_table", refuse)
    write_summary(study)
    scenario.conclude(study, against)
    assert capsys.readouterr().out == first


def test_a_knob_compared_with_two_references_leaves_both_tables_and_figures(tmp_path, study_writer, drawn, monkeypatch):
    monkeypatch.setattr("edgesim.scenario.closing.draw", lambda *_, **__: [])
    study = study_writer(tmp_path / "study", [{"server": server} for server in ("own", "mifa", "kpfl")], rounds=3)
    scenario.conclude(study, [("server", "own"), ("server", "kpfl")])
    found = {path.stem: set(pd.read_csv(path)["server"]) for path in study.glob("differences-server*.csv")}
    assert found == {"differences-server-own": {"mifa", "kpfl"}, "differences-server-kpfl": {"own", "mifa"}}
    assert {"differences-server-own", "differences-server-kpfl", "difference_rounds-server-kpfl"} <= set(drawn)
