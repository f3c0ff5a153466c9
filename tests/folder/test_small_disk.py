"""A disk that is really full: a small tmpfs, where the system lets one be mounted."""

import io
import subprocess
import sys

import pytest
from refusals import in_one_line
from rich.console import Console
from stopped_runs import content

from edgesim import Study, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.simulation import composition as simulation
from edgesim.studies.ledger import read_ledger

VALUES = {
    "seed": 5,
    "rounds": 8,
    "devices": {"count": 6},
    "round": {"payload_bits": 1e6, "tmax_s": 1.0},
    "data": {"samples_per_device": 8, "partition": "fedteddi"},
    "learning": {"pretrain": False, "steps": 1, "back_end": "loop"},
    "evaluation": {"samples": 20, "every": 2},
}
PLENTY = "64m"


@pytest.fixture
def disk(tmp_path):
    """A disk of so many KiB; called once more, with another size."""
    folder, mounted = tmp_path / "disk", []
    folder.mkdir()

    def sized(size):
        options = f"size={size}" + (",remount" if mounted else "")
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount here")
        if done.returncode:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
        mounted.append(size)
        return folder

    yield sized
    if mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    simulation.run(parse(VALUES, "test"), folder)
    return content(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs")
@pytest.mark.parametrize("size", ["4k", "16k", "48k", "80k", "112k"])
def test_a_full_disk_ends_a_run_in_a_line_and_with_room_it_goes_on(size, disk, undisturbed):
    config, out = parse(VALUES, "test"), disk(size) / "out"
    with in_one_line("No space left on device"):
        simulation.run(config, out, checkpoint_s=0.0)
    if (out / "rounds.arrow").exists():
        rounds = read_table(out, "rounds")["round"].tolist()
        assert rounds == list(range(1, len(rounds) + 1))
    if (out / "run.json").exists():
        assert read_run(out)["status"] != "finished"
    assert not list(out.glob("lease-*"))
    disk(PLENTY)
    assert simulation.run(config, out, checkpoint_s=0.0).status == "finished"
    assert content(out) == undisturbed
    assert not [path for path in out.iterdir() if path.suffix in (".part", ".arrow")]


@pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs")
@pytest.mark.parametrize("size", ["4k", "32k", "96k"])
def test_a_study_on_a_full_disk_ends_in_a_line_and_with_room_it_goes_on(size, disk, undisturbed, studies_here):
    study, out = Study("s", grid(VALUES, {"round.tmax_s": [1.0, 1.2]}, [5])), disk(size) / "study"
    quiet = Console(file=io.StringIO())
    with pytest.raises((EdgesimError, OSError), match="No space left on device"):
        run_study(study, out, console=quiet)
    if (out / "plan.json").exists():
        assert {state.status for state in read_ledger(out).values()} <= {"planned", "failed", "stopped", "lost"}
    disk(PLENTY)
    assert {ending.status for ending in run_study(study, out, console=quiet).values()} == {"finished"}
    assert content(out / "tmax1-s5") == undisturbed
