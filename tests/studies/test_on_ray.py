"""Studies on a real cluster of Ray, two nodes on this machine; and what is refused before one is needed."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_runs import TIMING
from stopped_runs import content
from typed_commands import edgesim as typed
from typed_commands import quiet
from waiting import wait_for

import edgesim
from edgesim import Study, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import leased, standing
from edgesim.folder.records import note_failure
from edgesim.simulation import composition as simulation
from edgesim.simulation.inputs import input_digests
from edgesim.studies import on_node, on_ray
from edgesim.studies.executor import Ending, Lost, RunOrder
from edgesim.studies.fetched import Left
from edgesim.studies.ledger import fingerprint, read_ledger
from edgesim.studies.plan_file import grow
from edgesim.studies.running import carried_out_by

SHORT = TIMING | {"rounds": 2}
STUDY = Study("s", grid(SHORT, {"round.tmax_s": [0.8, 1.0]}, [0]))
ROOT = Path(__file__).parents[2]


def test_a_node_that_is_lost_while_it_sends_files_has_lost_its_run_and_a_full_disk_here_has_not(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr(on_ray, "clear", lambda *_: None)
    # Without a cluster, which only its other parts need.
    tasks = object.__new__(on_ray.ClusterTasks)
    tasks.ray = ray
    order, left = (
        RunOrder(STUDY.runs[0].config, tmp_path, None, False),
        Left(Ending("finished", ""), "node", "there", {}),
    )
    errors = ray.exceptions
    no_file = errors.RayTaskError("_read", "a traceback", FileNotFoundError(2, "No such file")).as_instanceof_cause()
    for error in (errors.GetTimeoutError("60 s"), no_file, errors.NodeDiedError("gone"), OSError(28, "No space left")):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr(on_ray, "fetch", fail)
        said = tasks._brought(left, order)
        if isinstance(error, errors.RayError):
            assert isinstance(said, Lost)
        else:
            assert (said.status, said.reason) == ("failed", f"{tmp_path}: cannot be written: No space left")


def test_of_two_processes_whose_nodes_do_not_see_the_study_one_tries_a_run_that_fails(tmp_path):
    # Without a cluster, which only its other parts need.
    tasks = object.__new__(on_ray.ClusterTasks)
    tasks.blind, tasks._leases, tasks._early = ["node a"], {}, []
    grow(STUDY, tmp_path)
    folder = tmp_path / STUDY.runs[0].folder
    order = RunOrder(STUDY.runs[0].config, folder, None, False, fingerprint=fingerprint(folder))
    with leased(folder):
        assert tasks._claimed(order).status == "elsewhere"
        note_failure(folder, simulation.as_toml(order.config), "a loss is no number")
    ended = tasks._claimed(order)
    assert (ended.status, ended.reason) == ("failed", "a loss is no number")
    assert standing(folder) is None
    # A study that is begun now tries it again.
    assert tasks._claimed(replace(order, fingerprint=fingerprint(folder))) is None
    assert standing(folder).is_held
    tasks._release(folder.name)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cpus_per_run": 0}, "cpus_per_run: expected a number above 0, whole above 1 (got 0)"),
        ({"cpus_per_run": 1.5}, "cpus_per_run: expected a number above 0, whole above 1 (got 1.5)"),
        ({"gpus_per_run": -1}, "gpus_per_run: expected a number 0 or more"),
        ({"memory_per_run_gib": float("nan")}, "memory_per_run_gib: expected a number 0 or more (got nan)"),
    ],
)
def test_what_a_run_cannot_take_is_refused(given, words):
    with pytest.raises(EdgesimError) as refused:
        edgesim.Ray(**given)
    assert words in str(refused.value)


def test_a_node_has_room_for_as_many_runs_as_each_of_its_resources():
    share = edgesim.Ray(cpus_per_run=2, gpus_per_run=0.1, memory_per_run_gib=1).share
    assert share.fits({"CPU": 64.0, "GPU": 0.3, "memory": 2.0**40}) == 3
    assert share.fits({"CPU": 64.0, "GPU": 8.0, "memory": 2.5 * 2**30}) == 2
    assert share.fits({"CPU": 7.0, "GPU": 8.0, "memory": 2.0**40}) == 3
    assert share.fits({"CPU": 7.0, "memory": 2.0**40}) == 0


def test_ray_that_is_missing_and_its_options_without_it_are_refused_by_name(tmp_path, scenario, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EdgesimError, match=r"needs Ray; pip install 'edgesim\[ray\]'"):
        run_study(STUDY, tmp_path / "out", console=quiet(), executor=edgesim.Ray())
    grow(STUDY, tmp_path / "study")
    for option in ("--address", "--memory-per-run"):
        status, said = typed("study", "run", tmp_path / "study", option, 1)
        assert (status, said) == (2, f"error: {option}: is for --executor ray; add it, or leave {option} out")
    # Scenarios have the options, and hand them on.
    for words, told in (
        (["--executor", "ray"], "needs Ray; pip install"),
        (["--gpus-per-run", "1"], "--gpus-per-run: is for --executor ray"),
    ):
        assert told in scenario("fading.py", "--quick", *words, "--out", tmp_path / "out").output
    with carried_out_by(edgesim.Ray()), pytest.raises(EdgesimError, match="a tuning runs in processes of this machine"):
        edgesim.tune({}, {"round.tmax_s": "0.1:2.0"}, "energy-j", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_address_that_does_not_answer_is_refused_at_once_and_nothing_is_written(tmp_path):
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EdgesimError, match=f"^address {address}: no Ray cluster answers there"):
            run_study(STUDY, tmp_path / "out", console=quiet(), executor=edgesim.Ray(address))
    assert not (tmp_path / "out").exists()


def test_a_run_whose_code_or_files_are_others_on_its_node_is_not_begun(tmp_path):
    config = STUDY.runs[0].config
    order = RunOrder(config, tmp_path / "run", None, False)
    put = SimpleNamespace(put=SimpleNamespace(remote=lambda message: None))
    own = input_digests(config)
    grow(STUDY, tmp_path)
    plan = on_node.plan_hash(tmp_path)
    older = on_node.carry_out(order, 1, own | {"edgesim": "0.1"}, put, (), plan)
    assert older.status == "failed"
    assert older.reason == f"node {socket.gethostname()} has edgesim {own['edgesim']}, not 0.1"
    other = on_node.carry_out(order, 1, own | {"selection.policy": "0" * 64}, put, (), plan)
    assert other.reason == f"node {socket.gethostname()} has another selection.policy"
    assert not (tmp_path / "run").exists()
    assert on_node.carry_out(order, 1, own, put, (), plan).status == "finished"


@pytest.mark.slow
def test_more_than_any_node_has_is_refused_with_what_they_have(tmp_path, ray_nodes):
    with pytest.raises(
        EdgesimError, match=r"no node of the Ray cluster has 1 CPUs, 2 GPUs, 0 GiB for a run: .* 0 GPUs"
    ):
        run_study(STUDY, tmp_path / "out", console=quiet(), executor=edgesim.Ray(ray_nodes.address, gpus_per_run=2))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_node_with_another_edgesim_is_named(tmp_path, ray_nodes):
    installed = tmp_path / "installed/edgesim-9.9.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: edgesim\nVersion: 9.9\n")
    path = os.pathsep.join([str(installed.parent), str(ROOT)])
    added = ray_nodes.add(env_vars={"PYTHONPATH": path})
    try:
        with pytest.raises(EdgesimError, match=r"^Ray: node \S+ \(\S+\) has edgesim 9.9, not \d[^;]*$"):
            run_study(STUDY, tmp_path / "out", console=quiet(), executor=edgesim.Ray(ray_nodes.address))
    finally:
        ray_nodes.cluster.remove_node(added)
    assert not (tmp_path / "out").exists()


_POLICY = """
from edgesim.selection.random_choice import RandomChoice

class Mine(RandomChoice):
    pass
"""


@pytest.mark.slow
def test_a_policy_of_the_users_own_travels_to_nodes_that_do_not_have_it(tmp_path, monkeypatch, ray_nodes):
    (tmp_path / "policy_that_no_node_has.py").write_text(_POLICY)
    monkeypatch.syspath_prepend(tmp_path)
    study = Study("s", grid(SHORT | {"selection": {"policy": "policy_that_no_node_has.Mine"}}, {}, [0, 1]))
    endings = run_study(study, tmp_path / "out", console=quiet(), executor=edgesim.Ray(ray_nodes.address))
    assert {ending.status for ending in endings.values()} == {"finished"}
    run_study(study, tmp_path / "local", jobs=1, console=quiet())
    for run in study.runs:
        assert (tmp_path / "out" / run.folder / "code/policy_that_no_node_has.py").read_text() == _POLICY
        assert content(tmp_path / "out" / run.folder) == content(tmp_path / "local" / run.folder)


@pytest.mark.slow
def test_a_node_is_lost_in_the_middle_and_every_byte_is_that_of_a_local_study(tmp_path, ray_nodes):
    study = Study("s", grid(SHORT | {"rounds": 1000}, {"round.tmax_s": [0.8, 1.0]}, [0, 1]))
    grow(study, tmp_path / "out")
    added = ray_nodes.add()
    command = [sys.executable, "-m", "edgesim", "study", "run", "out", "--executor", "ray"]
    command += ["--address", ray_nodes.address]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        wait_for(lambda: at_work(tmp_path / "out") >= 3, "the nodes never worked at once", process)
        ray_nodes.cluster.remove_node(added, allow_graceful=False)
        said, _ = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert {state.status for state in read_ledger(tmp_path / "out").values()} == {"finished"}
    run_study(study, tmp_path / "local", jobs=2, console=quiet())
    for run in study.runs:
        assert content(tmp_path / "out" / run.folder) == content(tmp_path / "local" / run.folder)
    assert (tmp_path / "out/summary.csv").read_bytes() == (tmp_path / "local/summary.csv").read_bytes()


def at_work(folder):
    """How many runs have begun with their rounds and go on."""
    states = read_ledger(folder).items()
    return sum(state.status == "running" and any((folder / name).glob("rounds.*")) for name, state in states)
