"""Digests of results: a damaged byte is seen wherever the run is used, and `edgesim check` names the file."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from edited_runs import edit_json, forget_digests
from stopped_runs import content, stop_at
from typed_commands import edgesim_lines

import edgesim
from edgesim import Study, grid, run_study
from edgesim.analysis.check import check
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder import checkpoints
from edgesim.folder.records import SCHEMAS, read_run, read_table
from edgesim.screen.console import PlainConsole
from edgesim.simulation import composition as simulation
from edgesim.studies.ledger import read_ledger

VALUES = {
    "seed": 4,
    "rounds": 6,
    "devices": {"count": 5},
    "availability": {"model": "bernoulli", "probability": 0.9},
    "round": {"payload_bits": 4e6, "tmax_s": 0.8},
    "learning": {"training": "none", "pretrain": True},
    "data": {"dataset": "none", "partition": "fedteddi"},
}
CONFIG = parse(VALUES, "test")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    simulation.run(CONFIG, folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def flip(path: Path, place: int = 100) -> None:
    """Change one bit of a file."""
    bytes_ = bytearray(path.read_bytes())
    bytes_[place] ^= 1
    path.write_bytes(bytes_)


def checked(folder: Path) -> tuple[int, list[str]]:
    status, output = edgesim_lines("check", folder)
    return status, output.splitlines()


def test_run_json_has_the_digest_of_every_table_and_of_the_model(whole, tmp_path):
    assert read_run(whole)["digests"].keys() == {"config.toml", *(f"{name}.parquet" for name in (*SCHEMAS, "absences"))}
    learning = {"learning": {"pretrain": False, "steps": 1, "back_end": "loop"}, "data": {"samples_per_device": 8}}
    simulation.run(parse(VALUES | learning | {"rounds": 1}, "test"), tmp_path)
    for run in (whole, tmp_path):
        for name, digest in read_run(run)["digests"].items():
            assert sha256((run / name).read_bytes()).hexdigest() == digest
    assert "model.safetensors" in read_run(tmp_path)["digests"]


@pytest.mark.parametrize("table", [*SCHEMAS, "absences"])
def test_a_finished_run_with_a_damaged_byte_is_run_again_and_read_by_nobody(table, folder, whole):
    damaged = folder / f"{table}.parquet"
    # Within the pages of the first column, which many readers take as they are.
    flip(damaged, 30)
    assert checked(folder)[0] == 1
    assert checked(folder)[1][0].startswith(f"{damaged}: is damaged: its bytes are not those that the run wrote")
    if table in SCHEMAS:
        with pytest.raises(EdgesimError, match=f"{table}.parquet: is damaged: "):
            read_table(folder, table)
    result = simulation.run(CONFIG, folder)
    assert (result.reused, result.restarted) == (False, f"had a damaged {table}.parquet")
    assert content(folder) == content(whole)
    assert checked(folder) == (0, [f"{folder}: runs: 1 whole"])


def test_every_damaged_byte_of_a_table_is_seen(folder):
    for place in range(4, 700, 41):
        flip(folder / "rounds.parquet", place)
        with pytest.raises(EdgesimError, match=r"rounds\.parquet: is damaged"):
            read_table(folder, "rounds")
        assert simulation.why_run(folder, simulation.complete(CONFIG)) == "had a damaged rounds.parquet"
        flip(folder / "rounds.parquet", place)
    flip(folder / "rounds.parquet")
    with pytest.raises(EdgesimError, match=r"rounds\.parquet: is damaged"):
        edgesim.open(folder).show()
    with pytest.raises(EdgesimError, match=r"finished, but had a damaged rounds\.parquet; `edgesim run` runs it again"):
        edgesim.resume(folder, quiet=True)


def test_a_run_whose_config_was_edited_is_not_taken_for_a_run_of_the_edited_config(folder, whole):
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("tmax_s = 0.8", "tmax_s = 0.9"))
    edited = parse(VALUES | {"round": {"payload_bits": 4e6, "tmax_s": 0.9}}, "test")
    uses = [
        lambda asked=asked, fresh=fresh: simulation.run(asked, folder, fresh=fresh)
        for asked in (CONFIG, edited)
        for fresh in (False, True)
    ]
    for use in (*uses, lambda: edgesim.open(folder).show(), lambda: edgesim.resume(folder, quiet=True)):
        with pytest.raises(EdgesimError, match=r"config\.toml: is damaged: .*; restore the file, or remove the folder"):
            use()
    assert checked(folder)[0] == 1
    assert checked(folder)[1][0].startswith(f"{config}: is damaged: ")
    shutil.copy(whole / "config.toml", config)
    assert simulation.run(CONFIG, folder).reused


def test_a_damaged_run_is_neither_compared_nor_forked_nor_made_longer(folder, tmp_path):
    """A fork copies rows of tables that it does not look at, too."""
    others = []
    for policy, seed in (("random", 5), ("best-channel", 4), ("best-channel", 5)):
        others.append(tmp_path / f"{policy}-{seed}")
        simulation.run(parse(VALUES | {"seed": seed, "selection": {"policy": policy}}, "test"), others[-1])
    assert len(edgesim.compare([folder, *others], "energy_j").table) == 1
    simulation.run(CONFIG, tmp_path / "longer", checkpoint_s=0)
    for each in (folder, tmp_path / "longer"):
        flip(each / "activities.parquet", 30)
    with pytest.raises(EdgesimError, match=r"activities\.parquet: is damaged"):
        edgesim.compare([folder, *others], "energy_j")
    with pytest.raises(EdgesimError, match=r"activities\.parquet: is damaged"):
        edgesim.fork(tmp_path / "longer", 5, ["round.tmax_s=0.9"], tmp_path / "fork", quiet=True)
    assert not (tmp_path / "fork").exists()
    result = simulation.run(parse(VALUES | {"rounds": 8}, "test"), tmp_path / "longer")
    assert (result.resumed_after, result.restarted) == (0, "had a damaged activities.parquet")


def test_runs_that_went_on_after_a_kill_and_forks_have_the_digests_of_what_they_wrote(tmp_path, monkeypatch):
    monkeypatch.setattr("edgesim.folder.records.MOST_REST_BYTES", 0)
    assert stop_at(CONFIG, tmp_path / "run", 4) is None
    assert checked(tmp_path / "run")[0] == 0
    simulation.run(CONFIG, tmp_path / "run", checkpoint_s=0)
    edgesim.fork(tmp_path / "run", 5, ["round.tmax_s=0.9"], tmp_path / "fork", quiet=True)
    for name in ("run", "fork"):
        assert checked(tmp_path / name) == (0, [f"{tmp_path / name}: runs: 1 whole"])


def test_a_run_does_not_go_on_with_rows_that_were_damaged_on_the_disk(tmp_path, whole, monkeypatch):
    monkeypatch.setattr("edgesim.folder.records.MOST_REST_BYTES", 0)
    assert stop_at(CONFIG, tmp_path / "run", 4) is None
    stream = tmp_path / "run/rounds.arrow"
    flip(stream, stream.stat().st_size // 2)
    status, lines = checked(tmp_path / "run")
    assert status == 1
    assert all("rounds.arrow has other bytes than were on the disk then" in line for line in lines[:-1])
    said: list[str] = []
    result = simulation.run(CONFIG, tmp_path / "run", on_note=lambda _, note: said.append(note))
    assert "rounds.arrow has other bytes" in " ".join(said)
    assert result.resumed_after == 0
    assert content(tmp_path / "run") == content(whole)


def test_checkpoints_that_stay_are_checked_by_their_names(tmp_path):
    config = parse(VALUES | {"checkpoint_at": [2]}, "test")
    simulation.run(config, tmp_path)
    (kept,) = checkpoints.files(tmp_path, "kept")
    assert checked(tmp_path)[0] == 0
    flip(kept)
    status, lines = checked(tmp_path)
    assert status == 1
    assert f"{kept} is damaged (it was cut short or changed)" in lines


def test_a_missing_or_unreadable_file_is_named(folder):
    (folder / "updates.parquet").unlink()
    config = (folder / "config.toml").read_bytes()
    (folder / "config.toml").write_text("rounds = ")
    assert checked(folder)[1][0].startswith(f"{folder / 'config.toml'}: not valid TOML")
    (folder / "config.toml").write_bytes(config)
    assert checked(folder) == (1, [f"{folder / 'updates.parquet'}: is missing", f"{folder}: runs: 1 damaged"])


def test_a_users_own_files_in_a_run_folder_are_none_of_its_results(tmp_path):
    run = tmp_path / "run"
    assert stop_at(CONFIG, run, 4) is None
    own = [run / name for name in ("mine.parquet", "model-mine.safetensors")]
    for file in own:
        file.write_text("by the user")
    simulation.run(CONFIG, run)
    for file in own:
        file.write_text("edited")
    assert simulation.why_run(run, simulation.complete(CONFIG)) is None
    assert checked(run)[0] == 0


def test_an_older_run_is_reused_and_cannot_be_verified(folder):
    forget_digests(folder)
    flip(folder / "rounds.parquet", 30)
    assert simulation.why_run(folder, simulation.complete(CONFIG)) is None
    status, lines = checked(folder)
    assert lines[-1].startswith(f"{folder}: runs: 1 ")
    assert status == (0 if "readable, but without digests" in lines[-1] else 1)


def test_a_study_says_of_each_damaged_file_which_it_is_and_runs_that_run_again(tmp_path, studies_here):
    study, folder = Study("s", grid(VALUES, {}, [1, 2, 3])), tmp_path / "study"
    run_study(study, folder)
    shutil.rmtree(folder / "s3")
    flip(folder / "s2/updates.parquet", 30)
    assert checked(folder) == (
        1,
        [
            f"{folder}/s2/updates.parquet: is damaged: its bytes are not those that the run wrote",
            f"{folder}: runs: 1 whole; 1 damaged; 1 not begun",
        ],
    )
    endings = run_study(study, folder, console=PlainConsole(quiet=True))
    assert [ending.reused for ending in endings.values()] == [True, False, False]
    assert check(folder).damaged == []


def test_runs_that_are_not_finished_and_studies_that_are_left_out_are_named(tmp_path, whole, studies_here):
    shutil.copytree(whole, tmp_path / "lost")
    edgesim.run(VALUES, tmp_path / "whole", {"seed": 5}, quiet=True)
    edit_json(forget_digests(tmp_path / "lost") / "run.json", status="running")
    run_study(Study("s", grid(VALUES, {}, [1])), tmp_path / "study")
    line = f"{tmp_path}: runs: 1 whole; 1 lost, whole so far; not checked: the studies study"
    assert checked(tmp_path) == (0, [line])
    assert edgesim.open(tmp_path / "lost").status == read_ledger(tmp_path)["lost"].status == "lost"
    assert edgesim.open(tmp_path).unfinished == {"lost": "lost"}
    # Killed before it had written anything.
    shutil.rmtree(tmp_path / "study/s1")
    (tmp_path / "study/s1").mkdir()
    (tmp_path / "study/s1/lease-0001.json").write_text("{}")
    assert checked(tmp_path / "study") == (0, [f"{tmp_path}/study: runs: 1 not begun"])


def test_what_is_no_folder_of_edgesim_is_refused(tmp_path):
    assert checked(tmp_path / "absent") == (2, [f"error: {tmp_path / 'absent'}: no such folder"])
    assert checked(tmp_path) == (2, [f"error: {tmp_path}: is neither the folder of a run nor of a study"])
    (tmp_path / "plan.json").write_text(json.dumps({"runs": 3}))
    assert checked(tmp_path)[0] == 2
