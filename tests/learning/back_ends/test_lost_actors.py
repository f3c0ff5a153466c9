"""Actors and nodes that are lost while they train, and what a cluster cannot give."""

import os
import signal
import threading

import pytest
from stopped_runs import content

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.back_ends import on_ray
from edgesim.learning.back_ends.on_ray import RayBackEnd
from edgesim.simulation import composition as simulation

LONG = [list(range(0, 96 * 20 + 1, 96))] * 5


def pid_of(actor):
    import ray

    return ray.get(actor.handle.__ray_call__.remote(lambda _: os.getpid()), timeout=60)


@pytest.fixture
def during():
    """Does something half a second later, in the middle of jobs."""
    timers = []

    def start(do, *given):
        timers.append(threading.Timer(0.5, do, given))
        timers[-1].start()

    yield start
    for timer in timers:
        timer.join()


@pytest.mark.slow
def test_jobs_of_an_actor_that_is_killed_or_falls_silent_are_trained_elsewhere(
    over_actors, promises, has_the_bits, during, monkeypatch
):
    monkeypatch.setattr(on_ray, "_ASK_S", 0.5)
    monkeypatch.setattr(on_ray, "_SILENT_S", 10.0)
    model, back_end = over_actors()
    lost, really_lost = [], back_end._lost
    back_end._lost = lambda actor, why: lost.append(why) or really_lost(actor, why)
    for how in (signal.SIGKILL, signal.SIGSTOP):
        victim = next(actor for actor in back_end._actors if actor.beginning is None)
        during(os.kill, pid_of(victim), how)
        spread = promises(model, *LONG)
        assert back_end.run(spread) == len(LONG)
        assert victim not in back_end._actors
        has_the_bits(spread, promises(model, *LONG), model)
    assert len(lost) == 2
    assert lost[0].startswith("ActorDiedError: ")
    assert lost[1] == "it has not answered for 10 s"
    monkeypatch.setattr(on_ray, "_TRIES", 1)
    for actor in back_end._actors:
        if actor.beginning is None:
            during(os.kill, pid_of(actor), signal.SIGKILL)
    with pytest.raises(EdgesimError, match=r"^the job of device \d in round 1 was lost 1 times with its actor .*cpus_"):
        back_end.run(promises(model, *LONG))


@pytest.mark.slow
def test_a_run_that_loses_a_node_in_the_middle_has_every_byte_of_the_loop(tmp_path, monkeypatch, ray_nodes, during):
    monkeypatch.setenv("RAY_ADDRESS", ray_nodes.address)
    added = ray_nodes.add()
    lost, really_lost = [], RayBackEnd._lost
    monkeypatch.setattr(RayBackEnd, "_lost", lambda self, *given: lost.append(given) or really_lost(self, *given))

    def on_round(done):
        if done.round == 1:
            during(ray_nodes.cluster.remove_node, added, False)

    for name in ("loop", "ray"):
        learning = {"model": "small-cnn", "steps": 40, "pretrain": False, "back_end": name}
        values = {
            "rounds": 3,
            "round": {"payload_bits": 1e6},
            "learning": learning,
            "algorithm": {"name": "scaffold"},
            "data": {"partition": "fedteddi"},
        }
        config = parse(values, "test")
        simulation.run(config, tmp_path / name, on_round if name == "ray" else lambda _: None, cores=1)
    assert len(lost) == 1
    assert content(tmp_path / "ray") == content(tmp_path / "loop")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learning", "words"),
    [
        ({"gpus_per_actor": 1}, "no node of the Ray cluster has 1 CPUs, 1 GPUs, 0 GiB for an actor of "),
        ({"workers": 9}, "learning.workers: 9 actors are wanted, and the Ray cluster has room for "),
    ],
)
def test_more_than_the_cluster_has_is_refused(learning, words, over_actors):
    with pytest.raises(EdgesimError, match=words):
        over_actors(**learning)


_NET = """
from torch import nn

def net(image_shape, class_count):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, class_count))
"""


@pytest.mark.slow
def test_a_model_of_the_users_own_travels_to_nodes_that_do_not_have_it(tmp_path, monkeypatch, ray_nodes):
    (tmp_path / "net_that_no_node_has.py").write_text(_NET)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RAY_ADDRESS", ray_nodes.address)
    for name in ("loop", "ray"):
        learning = {"model": "net_that_no_node_has.net", "back_end": name, "pretrain": False}
        values = {"rounds": 2, "round": {"payload_bits": 1e6}, "learning": learning, "data": {"partition": "fedteddi"}}
        simulation.run(parse(values, "test"), tmp_path / name, cores=1)
    loop, spread = (read_table(tmp_path / name, "updates") for name in ("loop", "ray"))
    assert len(loop) > 0
    assert loop.equals(spread)
