"""Nodes that are not as the study's machine: they have small, empty disks mounted in the place of its folders."""

import io
import os
import re
import signal
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console
from small_runs import TIMING
from stopped_runs import content
from typed_commands import quiet
from waiting import wait_for

import edgesim
from edgesim import Study, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import file_digest
from edgesim.cluster.connection import connected
from edgesim.studies.executor import Ending
from edgesim.studies.fetched import PIECE_BYTES, Left, fetch
from edgesim.studies.ledger import read_ledger

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs mount namespaces")]

BASE = {key: of for key, of in TIMING.items() if key != "rounds"}
NODE = """
mount -t tmpfs -o size={size} tmpfs {folder} && mkdir {folder}/tmp && exec {ray} start --address {address} \\
    --num-cpus 2 --object-store-memory 83886080 --block
"""


@contextmanager
def blind_node(ray_nodes, folder, size="64m", hidden=()):
    """A node of two processors with an empty disk in the place of a folder; its process, once it is there.

    It does not see the folders ``hidden`` either.
    """
    ray = Path(sys.executable).with_name("ray")
    script = "".join(f"mount -t tmpfs tmpfs {each} && " for each in hidden)
    script += NODE.strip().format(size=size, folder=folder, ray=ray, address=ray_nodes.address)
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script]
    environment = os.environ | {"TMPDIR": f"{folder}/tmp"}
    here = subprocess.run([*command[:3], "true"], capture_output=True, check=False).returncode
    if here:
        pytest.skip("no mount namespaces can be made here")
    with connected(ray_nodes.address, "a test") as cluster:
        before = {node["NodeID"] for node in cluster.nodes()}
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(lambda: {node["NodeID"] for node in cluster.nodes()} != before, "the node has not begun", process)
    try:
        yield process
    finally:
        # All processes of the node at once.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def test_a_run_that_fills_the_disk_of_its_node_fails_in_a_line_and_the_others_are_fetched(tmp_path, ray_nodes):
    out, local = tmp_path / "out", tmp_path / "local"
    study = Study("s", grid(BASE, {"rounds": [2, 1200]}, [0, 1]))
    executor = edgesim.Ray(ray_nodes.address, cpus_per_run=2)
    said = io.StringIO()
    with blind_node(ray_nodes, tmp_path, "256k") as node:
        console = Console(file=said, width=400)
        endings = run_study(study, out, console=console, executor=executor)
        assert re.search(r"node \S+ \(\S+\) cannot see the study, so files of its runs are sent back", said.getvalue())
        failed = {name: ending for name, ending in endings.items() if ending.status != "finished"}
        assert [*failed] == [run.folder for run in study.runs if run.knobs["rounds"] == 1200]
        states = read_ledger(out)
        assert {states[name].status for name in failed} == {"failed"}
        for state in failed.values():
            assert "No space left on device" in state.reason
            assert "\n" not in state.reason
        remount = ["mount", "-o", "remount,size=64m", str(tmp_path)]
        subprocess.run(["nsenter", "-t", str(node.pid), "-m", *remount], check=True)
        endings = run_study(study, out, console=quiet(), executor=executor, retry_failed=True)
    assert {ending.status for ending in endings.values()} == {"finished"}
    run_study(study, local, jobs=2, console=quiet())
    for run in study.runs:
        assert content(out / run.folder) == content(local / run.folder)
        # The record of a run's end is named by what it holds, wall seconds too.
        kept, made = ({path.name[:10] for path in (folder / run.folder).iterdir()} for folder in (out, local))
        assert kept == made
    assert (out / "summary.csv").read_bytes() == (local / "summary.csv").read_bytes()


def test_what_comes_back_with_another_hash_is_not_taken(tmp_path, ray_nodes):
    there, here = tmp_path / "there", tmp_path / "here"
    for folder in (there, here):
        folder.mkdir()
    (there / "model.safetensors").write_bytes(os.urandom(3 * PIECE_BYTES + 5))
    for folder in (there, here):
        (folder / "run.json").write_text(folder.name)
    files = {path.name: (path.stat().st_size, file_digest(path)) for path in there.iterdir()}
    with connected(ray_nodes.address, "a test") as ray:
        node = ray.get_runtime_context().get_node_id()
        wrong = files | {"model.safetensors": (files["model.safetensors"][0], bytes(32))}
        with pytest.raises(EdgesimError, match=r"model.safetensors: came back from its node with another hash"):
            fetch(ray, Left(Ending("finished", ""), node, str(there), wrong), here)
        assert [path.name for path in here.iterdir()] == ["run.json"]
        assert (here / "run.json").read_text() == "here"
        fetch(ray, Left(Ending("finished", ""), node, str(there), files), here)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == {
        path.name: path.read_bytes() for path in there.iterdir()
    }


def test_a_node_without_edgesim_is_named_before_anything_is_written(tmp_path, ray_nodes):
    packages = Path(sysconfig.get_path("purelib"))
    roots = {Path(line) for link in packages.glob("*edgesim*.pth") for line in link.read_text().splitlines()}
    hidden = {Path(edgesim.__file__).parent, *(root / "edgesim" for root in [*roots, packages])}
    (tmp_path / "folder").mkdir()
    with (
        blind_node(ray_nodes, tmp_path / "folder", hidden=[each for each in hidden if each.is_dir()]),
        pytest.raises(
            EdgesimError, match=r"^Ray: node \S+ \(\S+\) cannot load edgesim \(.*No module named 'edgesim.*\)$"
        ),
    ):
        run_study(Study("s", grid(BASE, {}, [0])), tmp_path / "out", executor=edgesim.Ray(ray_nodes.address))
    assert not (tmp_path / "out").exists()
