"""What the system refuses, a full disk or a folder that is read-only, is one line, and nothing half-written counts.

A limit on the size of files stands for the full disk: the write that passes it fails with as many bytes as would fit.
"""

import io
import os
import resource
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
import tomli_w
from fuzz_inputs import BASE, WEEK
from refusals import in_one_line
from rich.console import Console
from stopped_runs import content
from typed_commands import edgesim_lines

from edgesim import Study, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.simulation import composition as simulation
from edgesim.studies.ledger import read_ledger

ROUNDS = 40
RUN = BASE | {"rounds": ROUNDS}
TRAINED = BASE | {
    "data": {"dataset": "digits", "partition": "fedteddi", "samples_per_device": 8},
    "learning": {"pretrain": False, "steps": 1, "back_end": "loop"},
}


@contextmanager
def room(bytes_per_file: int):
    """No file may become larger than this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_per_file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def typed(*words: object) -> tuple[int, str]:
    """Exit status and the error, which has to be one line, of a command."""
    status, output = edgesim_lines(*words)
    errors = [line for line in output.splitlines() if line.startswith("error: ")]
    assert len(errors) == (status != 0), output
    assert not errors or output.splitlines()[-1] == errors[0]
    return status, "".join(errors)


@pytest.fixture
def run_toml(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(tomli_w.dumps(RUN))
    return path


@pytest.mark.parametrize("bytes_per_file", [0, 300, 6_000, 12_000])
def test_a_run_that_fills_the_disk_ends_in_a_line_and_the_next_start_runs_it(bytes_per_file, tmp_path, run_toml):
    out = tmp_path / "out"
    with room(bytes_per_file):
        status, error = typed("run", run_toml, "--out", out)
    assert status == 2
    assert str(out) in error
    assert "File too large" in error
    if (out / "run.json").exists():
        assert read_run(out)["status"] != "finished"
    if (out / "rounds.arrow").exists() or (out / "rounds.parquet").exists():
        rounds = read_table(out, "rounds")["round"].tolist()
        assert rounds == list(range(1, len(rounds) + 1))
    assert not list(out.glob("*.part"))
    assert typed("run", run_toml, "--out", out) == (0, "")
    assert read_run(out)["status"] == "finished"
    assert len(read_table(out, "rounds")) == ROUNDS
    assert not [path for path in out.iterdir() if path.suffix in (".part", ".arrow")]


def test_a_run_whose_checkpoints_fill_the_disk_goes_on_to_the_same_bytes_once_there_is_room(tmp_path):
    config = parse(TRAINED, "test")
    simulation.run(config, tmp_path / "undisturbed")
    for bytes_per_file in (300, 8_000, 20_000):
        out = tmp_path / str(bytes_per_file)
        with room(bytes_per_file), in_one_line("File too large"):
            simulation.run(config, out, checkpoint_s=0.0)
        assert not list(out.glob("lease-*"))
        assert simulation.run(config, out, checkpoint_s=0.0).status == "finished"
        assert content(out) == content(tmp_path / "undisturbed")
        assert not [path for path in out.iterdir() if path.suffix in (".part", ".arrow")]


def test_a_disk_that_is_full_between_two_rounds_leaves_the_rounds_before_and_says_that_the_run_failed(tmp_path):
    def fill(done):
        if done.round == 10:
            # What was written so far is on the disk, and nothing more will be; `run.json` fits.
            tables = [path.stat().st_size for path in (tmp_path / "out").glob("*.arrow")]
            resource.setrlimit(resource.RLIMIT_FSIZE, (max(tables), resource.RLIM_INFINITY))

    with pytest.MonkeyPatch.context() as patch, room(resource.RLIM_INFINITY):
        patch.setattr("edgesim.folder.records._FLUSH_S", 0.0)
        with pytest.raises(EdgesimError, match="out: cannot be written: File too large; the rounds"):
            simulation.run(parse(RUN, "test"), tmp_path / "out", fill)
    assert read_table(tmp_path / "out", "rounds")["round"].tolist() == list(range(1, 11))
    run = read_run(tmp_path / "out")
    assert run["status"] == "failed"
    assert "File too large" in run["reason"]


@pytest.mark.slow
def test_a_model_that_does_not_fit_the_disk_is_not_there_in_part(tmp_path):
    config = BASE | {
        "rounds": 1,
        "data": {"dataset": "digits", "partition": "fedteddi"},
        "learning": {"model": "fedteddi-cnn", "pretrain": False, "back_end": "loop"},
    }
    model = tmp_path / "out/model.safetensors"
    with room(30_000), pytest.raises(EdgesimError, match=r"model.safetensors: cannot be written: .*too large"):
        simulation.run(parse(config, "test"), tmp_path / "out")
    assert read_run(tmp_path / "out")["status"] == "failed"
    assert not list(model.parent.glob("model*"))
    assert simulation.run(parse(config, "test"), tmp_path / "out").status == "finished"
    assert model.stat().st_size > 30_000


def test_a_study_on_a_full_disk_ends_in_a_line_and_the_next_start_goes_on(tmp_path, studies_here):
    study = Study("s", grid(RUN, {"round.tmax_s": [1.0, 1.2]}, [0]))
    with (
        room(6_000),
        pytest.raises(EdgesimError, match=r"no run finished; the first one: .*cannot be written: File too"),
    ):
        run_study(study, tmp_path / "out", console=Console(file=io.StringIO()))
    assert [state.status for state in read_ledger(tmp_path / "out").values()] == ["failed", "failed"]
    wider = Study("s", grid(RUN, {"round.tmax_s": [1.0, 1.2, 1.4]}, [0]))
    with room(300), pytest.raises(OSError, match="File too large") as refused:
        # What a study prints has room.
        run_study(wider, tmp_path / "out", console=Console(file=io.StringIO()))
    # The plan is that of before, whole.
    assert refused.value.filename == str(tmp_path / "out/plan.json")
    assert [state.status for state in read_ledger(tmp_path / "out").values()] == ["failed", "failed"]
    assert {end.status for end in run_study(study, tmp_path / "out").values()} == {"finished"}


@pytest.mark.slow
def test_figures_traces_and_configs_that_do_not_fit_the_disk_are_refused_in_a_line(tmp_path, run_toml):
    assert typed("run", run_toml, "--out", tmp_path / "out") == (0, "")
    (tmp_path / "week.csv").write_text(WEEK)
    for words, place in [
        (("plot", tmp_path / "out"), "out/plots/"),
        (("trace", "convert", tmp_path / "week.csv", tmp_path / "o.parquet"), "o.parquet"),
    ]:
        with room(40):
            status, error = typed(*words)
        assert (status, "File too large" in error, place in error) == (2, True, True), error
    assert not list(tmp_path.glob("o.*"))


@pytest.fixture
def read_only(tmp_path):
    """Makes a folder read-only, until the test is over."""
    locked = []

    def lock(folder: Path):
        if os.geteuid():
            folder.chmod(0o500)
        elif subprocess.run(["chattr", "+i", str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("the superuser may write everywhere here")
        locked.append(folder)
        return folder

    yield lock
    for folder in locked:
        folder.chmod(0o700) if os.geteuid() else subprocess.run(["chattr", "-i", str(folder)], check=True)


def test_folders_that_are_read_only_are_refused_in_a_line(tmp_path, run_toml, read_only, studies_here):
    assert typed("run", run_toml, "--out", tmp_path / "out") == (0, "")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    empty = tmp_path / "empty"
    empty.mkdir()
    for folder in (empty, tmp_path / "out"):
        read_only(folder)
    (tmp_path / "week.csv").write_text(WEEK)
    for words in [
        ("run", run_toml, "--out", empty),
        ("run", run_toml, "--out", empty / "inner"),
        ("run", run_toml, "--out", tmp_path / "out", "--fresh"),
        ("plot", tmp_path / "out"),
        ("trace", "convert", tmp_path / "week.csv", empty / "o.parquet"),
    ]:
        status, error = typed(*words)
        assert status == 2
        assert "Operation not permitted" in error or "Permission denied" in error
    # Reading needs no writing.
    assert typed("show", tmp_path / "out") == (0, "")
    assert typed("run", run_toml, "--out", tmp_path / "out") == (0, "")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == kept
    with pytest.raises(EdgesimError, match="empty/study: cannot be made a study's folder"):
        run_study(Study("s", grid(RUN, {"round.tmax_s": [1.0]}, [0])), empty / "study")
