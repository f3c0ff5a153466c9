"""Folders of strangers: what is written into them stays in them, and names of content do not lead out of theirs."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import tomli_w
from small_runs import TIMING
from stopped_runs import stop_at
from typed_commands import edgesim_lines, refused

from edgesim import Study, grid, run_study
from edgesim.base import content
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import own_file
from edgesim.config_file import parse
from edgesim.plots import style
from edgesim.plots.gallery import draw
from edgesim.plots.style import save
from edgesim.studies.slurm import write_script

SETTINGS = TIMING | {"rounds": 2}


@pytest.fixture(autouse=True)
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file elsewhere, to which strangers' links lead."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("run.toml").write_text(tomli_w.dumps(SETTINGS))
    Path("victim").write_text("precious")
    return tmp_path / "victim"


def stopped(folder: Path) -> None:
    """A run of a policy of the user's own that was stopped, with checkpoints."""
    Path("mine.py").write_text(
        "from edgesim.selection.random_choice import RandomChoice\n\n\nclass Mine(RandomChoice):\n    pass\n"
    )
    config = parse(SETTINGS | {"rounds": 6, "selection": {"policy": "mine.Mine"}}, "test")
    assert stop_at(config, folder, 4) is None


def names_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def written_names(folder: Path) -> list[str]:
    """Every name, of a file or a folder, that is ever there while a run is made, goes on and ends."""
    seen: set[str] = set()
    watching = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("open", "os.mkdir", "os.link", "os.rename"):
            for path in arguments[:2]:
                if isinstance(path, str | Path) and Path(path).absolute().is_relative_to(folder.absolute()):
                    seen.add(Path(path).absolute().relative_to(folder.absolute()).as_posix())

    sys.addaudithook(hook)
    stopped(folder)
    seen |= names_below(folder)
    assert edgesim_lines("resume", str(folder))[0] == 0
    watching = False
    return sorted((seen | names_below(folder)) - {"."})


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def link_to_file(path: Path) -> None:
    path.symlink_to(Path("victim").absolute())


def link_to_folder(path: Path) -> None:
    path.symlink_to(Path("elsewhere").absolute())


def link_to_nothing(path: Path) -> None:
    path.symlink_to(Path("elsewhere/new").absolute())


def pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "put",
    [link_to_nothing, *(pytest.param(each, marks=pytest.mark.slow) for each in (link_to_file, link_to_folder, pipe))],
)
def test_a_run_writes_through_no_link_in_its_folder_whatever_its_name(put, victim):
    names = {re.sub("[0-9a-f]{16}", "0" * 16, name) for name in written_names(Path("whole"))}
    assert {"code", "code/mine.py", "lease-0001.json", "checkpoint.part", "rounds.arrow"} <= names
    stopped(Path("before"))
    Path("elsewhere").mkdir()
    Path("elsewhere/precious").write_text("precious")
    for number, name in enumerate(sorted(names)):
        folder = Path(f"run-{number}")
        shutil.copytree("before", folder)
        place = folder / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        put(place)
        status, output = edgesim_lines("resume", str(folder))
        assert (status, output.count("\n")) == (2, 1 + output.count("note: ")), (name, output)
        assert tree(Path("elsewhere")) == {"precious": b"precious"}, name
        assert victim.read_text() == "precious", name


def test_a_start_in_a_folder_with_a_dangling_lease_ends_in_a_line(victim):
    for name, put in (("lease-0001.json", link_to_nothing), ("lease-0002.json", pipe), ("lease-0003.json", Path.mkdir)):
        folder = Path(f"run-{name}")
        folder.mkdir()
        put(folder / name)
        assert f"{folder}/{name}: expected " in refused("run", "run.toml", "--out", folder)
        assert [path.name for path in folder.iterdir()] == [name]


def test_a_copy_made_of_hard_links_keeps_its_content_when_the_run_goes_on(monkeypatch):
    monkeypatch.setattr("edgesim.folder.records.MOST_REST_BYTES", 0)
    stopped(Path("run"))
    shutil.copytree("run", "copy", copy_function=os.link)
    before = tree(Path("copy"))
    assert edgesim_lines("resume", "run")[0] == 0
    assert tree(Path("copy")) == before
    assert edgesim_lines("resume", "copy")[0] == 0
    assert Path("copy/rounds.parquet").read_bytes() == Path("run/rounds.parquet").read_bytes()


@pytest.mark.usefixtures("figures_as_text")
def test_figures_are_drawn_through_no_link_beside_a_dangling_lease_and_another_dangling_link_is_named(victim):
    assert edgesim_lines("run", "run.toml", "--out", "run")[0] == 0
    Path("run/plots").mkdir()
    for name in ("made.json", "made.json.part"):
        Path("run/plots", name).symlink_to(victim)
    link_to_nothing(Path("run/lease-0009.json"))
    assert edgesim_lines("plot", "run")[0] == 0
    link_to_nothing(Path("run/notes.json"))
    assert edgesim_lines("plot", "run") == (2, "error: run/notes.json: cannot be read: No such file or directory\n")
    for name in ("energy.png", "energy.svg"):
        Path(name).symlink_to(victim)
    with style.figure(1.0, 1.0) as figure:
        save(figure, Path("energy"))
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["slurm", "plots", "tuning", "s1", "plan.json.part", "summary.csv", "notes of mine"])
def test_nothing_of_a_study_is_written_through_a_link_in_its_folder(name, victim, studies_here):
    study, place = Study("s", grid(SETTINGS, {}, [1])), Path("study", name)
    run_study(study, Path("study"))
    Path("elsewhere").mkdir()
    if name == "slurm":
        # Else nothing is left to submit.
        Path("study/s1/run.json").unlink()
    act = {
        "slurm": lambda: write_script(Path("study"), 1),
        "plots": lambda: draw([Path("study")], Path("study/plots")),
    }.get(name, lambda: run_study(study, Path("study"), fresh=True))
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    (link_to_folder if name in ("slurm", "plots", "tuning", "s1") else link_to_file)(place)
    # A folder that is to be written to is looked at for itself.
    expected = "a folder" if name in ("slurm", "plots", "s1") else "a file or a folder"
    with pytest.raises(EdgesimError, match=rf"study/{name}: expected {expected} \(got a link to"):
        act()
    assert list(Path("elsewhere").iterdir()) == []
    assert victim.read_text() == "precious"


def test_a_table_of_a_study_replaces_a_link(victim, studies_here):
    run_study(Study("s", grid(SETTINGS, {}, [1])), Path("study"))
    for name in ("summary.csv", "summary.csv.part", "made.json"):
        Path("study", name).unlink(missing_ok=True)
        Path("study", name).symlink_to(victim)
    assert edgesim_lines("study", "table", "study")[0] == 0
    assert victim.read_text() == "precious"
    assert Path("study/summary.csv").read_text().startswith("seeds,")


@pytest.mark.parametrize("name", ["../secret", "../../secret", "inner/../../secret"])
def test_a_name_of_content_does_not_lead_out_of_its_folder(name):
    Path("channels/inner").mkdir(parents=True)
    Path("secret.toml").write_text("")
    Path("../secret.toml").write_text("")
    with pytest.raises(EdgesimError, match="channels: no file"):
        content.find("channels", name, ".toml")


def test_what_is_written_to_a_device_of_the_system_leaves_it_there():
    assert own_file(Path("/dev/null")).exists()
