"""Folders of strangers: what is written into them stays in them, and names of content do not lead out of theirs."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim import Study, grid, run_study
from edgesim.cli import app
from edgesim.errors import EdgesimError
from edgesim.files import content
from edgesim.files.paths import own_file
from edgesim.runs.records import SCHEMAS

SETTINGS = {"rounds": 2, "round": {"payload_bits": 17881664.0, "tmax_s": 0.8}, "learning": {"training": "none"}}
WRITTEN = [
    *(f"{name}.{kind}" for name in SCHEMAS for kind in ("arrow", "parquet", "parquet.part")),
    *(f"{name}{part}" for name in ("config.toml", "run.json") for part in ("", ".part")),
]  # fmt: skip


@pytest.fixture(autouse=True)
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file elsewhere, to which strangers' links lead."""
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(
        'rounds = 2\n[round]\npayload_bits = 1e7\ntmax_s = 0.8\n[learning]\ntraining = "none"\n'
    )
    Path("victim").write_text("precious")
    return tmp_path / "victim"


def edgesim(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    return result.exit_code, result.output


@pytest.mark.parametrize("name", WRITTEN)
def test_a_run_writes_through_no_link_in_its_folder(name: str, victim: Path) -> None:
    assert edgesim("run", "run.toml", "--out", "run")[0] == 0
    # As one that was killed: it is run again.
    (victim.parent / "run/run.json").unlink()
    linked = victim.parent / "run" / name
    if name == "config.toml":
        victim.write_text(linked.read_text())
    before = victim.read_bytes()
    linked.unlink(missing_ok=True)
    linked.symlink_to(victim)
    status, output = edgesim("run", "run.toml", "--out", "run")
    assert victim.read_bytes() == before
    assert status == (2 if name == "run.json" else 0), output
    assert status or not linked.is_symlink()


@pytest.mark.slow
def test_figures_are_drawn_through_no_link(victim: Path) -> None:
    assert edgesim("run", "run.toml", "--out", "run")[0] == 0
    Path("run/plots").mkdir()
    for name in ("energy.png", "energy.svg", "made.json", "made.json.part"):
        Path("run/plots", name).symlink_to(victim)
    assert edgesim("plot", "run")[0] == 0
    assert victim.read_text() == "precious"


def test_figures_are_not_drawn_into_a_folder_elsewhere(victim: Path) -> None:
    assert edgesim("run", "run.toml", "--out", "run")[0] == 0
    Path("elsewhere").mkdir()
    Path("run/plots").symlink_to(victim.parent / "elsewhere")
    status, output = edgesim("plot", "run")
    assert (status, list(Path("elsewhere").iterdir())) == (2, [])
    assert "error: run/plots: expected a folder (got a link to" in output


@pytest.mark.parametrize("name", ["plan.json.part", "summary.csv"])
def test_a_study_writes_through_no_link_in_its_folder(name: str, victim: Path, studies_here: None) -> None:
    study = Study("s", grid(SETTINGS, {}, [1]))
    run_study(study, Path("study"))
    Path("study", name).unlink(missing_ok=True)
    Path("study", name).symlink_to(victim)
    run_study(study, Path("study"), fresh=True)
    assert victim.read_text() == "precious"


def test_a_run_of_a_study_is_not_written_into_a_folder_elsewhere(studies_here: None) -> None:
    Path("elsewhere").mkdir()
    Path("study").mkdir()
    Path("study/study.json").write_text('{"runs": [{"knobs": {}}]}')
    Path("study/s1").symlink_to(Path("elsewhere").absolute())
    with pytest.raises(EdgesimError, match=r"study/s1: expected a folder \(got a link to"):
        run_study(Study("s", grid(SETTINGS, {}, [1])), Path("study"))
    assert list(Path("elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["../secret", "../../secret", "inner/../../secret"])
def test_a_name_of_content_does_not_lead_out_of_its_folder(name: str) -> None:
    Path("channels/inner").mkdir(parents=True)
    Path("secret.toml").write_text("")
    Path("../secret.toml").write_text("")
    with pytest.raises(EdgesimError, match="channels: no file"):
        content.find("channels", name, ".toml")


def test_a_link_is_replaced_and_a_file_is_not(victim: Path) -> None:
    Path("link").symlink_to(victim)
    assert not own_file(Path("link")).exists()
    assert own_file(victim).read_text() == "precious"


def test_a_named_pipe_in_the_place_of_a_file_is_removed_and_a_device_of_the_system_is_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rounds.arrow")
    assert not own_file(tmp_path / "rounds.arrow").exists()
    assert own_file(Path("/dev/null")).exists()
