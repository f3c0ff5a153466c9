import dataclasses
import functools
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

from edgesim.base.errors import Diverged, EdgesimError
from edgesim.learning.algorithms.records import Phase
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.workers import NoSharedMemory, WorkersBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import new_model
from edgesim.learning.torch_settings import reproducible

SHAPE, CLASSES = (3, 16, 16), 4
CPU = torch.device("cpu")

EDGES = ([0, 8, 16], [0, 8, 12], [0, 8, 16], [0, 3, 8, 10], [0, 8])


def _started(back_end):
    """Wait until every process has said that it is ready."""
    deadline = time.monotonic() + 120
    while not all(worker.started for worker in back_end._workers):
        for worker in back_end._heard(1.0):
            back_end._receive(worker, {})
        assert time.monotonic() < deadline
    return back_end


def _made(data, pulling, name, count, mixed=False):
    builder = functools.partial(new_model, name, SHAPE, CLASSES, 5)
    model = FlatModel(builder(), CPU, mixed)
    return model, WorkersBackEnd(model, data, builder, count, pulling)


@pytest.fixture(scope="module")
def two(data, pulling):
    """A model and a back end of two processes that have started."""
    model, back_end = _made(data, pulling, "fedteddi-cnn", 2)
    yield model, _started(back_end)
    back_end.close()


@pytest.fixture
def make(data, pulling):
    """Back ends of one process, closed after the test."""
    made = []

    def build(name, mixed=False):
        model, back_end = _made(data, pulling, name, 1, mixed)
        made.append(back_end)
        return model, back_end

    yield build
    for back_end in made:
        back_end.close()


def _processes(back_end):
    return [worker.process for worker in back_end._workers]


@pytest.mark.slow
def test_a_network_with_batch_norms_has_the_bits_of_the_loop_too(make, promises, has_the_bits):
    model, back_end = make("torchvision:shufflenet_v2_x0_5")
    edges = ([0, 6, 12], [0, 6])
    alone, spread = promises(model, *edges), promises(model, *edges)
    with reproducible(CPU):
        assert _started(back_end).run(spread) == 2
    has_the_bits(spread, alone, model)
    running = alone[0].result.update[model.trainable :]
    assert running.count_nonzero() > 0.9 * len(running)


@pytest.mark.slow
def test_workers_bring_the_very_bits_of_the_loop_and_go_on_doing_so(two, promises, has_the_bits):
    """On a net with dropout."""
    model, back_end = two
    starts = {"scale": [1.0, 0.9, 1.0, 1.1, 0.9], "augmented": True, "weight_decay": 0.1}
    pull = {"to_start": 0.5, "decay": [0.0, 0.1, 0.2, 0.3, 0.4], "shift": [0.0, 0.1, 0.2, 0.0, 0.3]}
    lasting = {"persist_momentum": True, "velocity": [0.0, 0.1, 0.2, 0.0, 0.3]}
    for given in ({}, starts | pull, {"kind": "adam", "clip_norm": 4.0}, {"clip_norm": 4.0} | lasting):
        spread = promises(model, *EDGES, **given)
        with reproducible(CPU):
            assert back_end.run(spread) == len(EDGES)
            assert back_end.run(spread) == 0
        has_the_bits(spread, promises(model, *EDGES, **given), model)
        assert (spread[0].result.velocity is None) == (given.get("persist_momentum") is None)


@pytest.mark.slow
def test_mixed_precision_has_the_bits_of_the_loop_too_and_others_than_single(
    make, two, data, promises, pulling, has_the_bits
):
    model, back_end = make("fedteddi-cnn", mixed=True)
    alone, spread, single = promises(model, *EDGES), promises(model, *EDGES), promises(model, *EDGES)
    with reproducible(CPU):
        _started(back_end).run(spread)
        LoopBackEnd(two[0], data, pulling).run(single)
    has_the_bits(spread, alone, model)
    for one, other in zip(alone, single, strict=True):
        difference = (one.result.update - other.result.update).norm() / other.result.update.norm()
        assert 1e-5 < float(difference) < 0.2


def test_a_diverging_job_is_the_error_of_the_loop_and_a_worker_killed_at_work_is_named_with_what_to_do(make, promises):
    model, back_end = make("fedteddi-cnn")
    edges = [list(range(0, 41, 4))] * 4
    with pytest.raises(Diverged, match=r"device 1, round 1, step [2-9]: .*lower learning.lr"):
        _started(back_end).run(promises(model, *edges, lr=[0.01, 1e30, 0.01, 1e30]))
    # The worker lives on.
    assert back_end.run(promises(model, *edges)) == 4
    made = promises(model, *[list(range(0, 96 * 40 + 1, 96))] * 4)
    (victim,) = _processes(back_end)
    threading.Timer(0.5, os.kill, (victim.pid, signal.SIGKILL)).start()
    with pytest.raises(
        EdgesimError,
        match=rf"worker 1 of 1 \(process {victim.pid}\) was killed by signal 9 while training device \d in round 1; .*"
        r"set learning.workers lower",
    ):
        back_end.run(made)


@pytest.mark.slow
def test_until_a_worker_has_started_the_jobs_run_here(make, promises, has_the_bits):
    model, back_end = make("mlp")
    spread, alone = promises(model, *EDGES), promises(model, *EDGES)
    with reproducible(CPU):
        assert back_end.run(spread) == len(EDGES)
    has_the_bits(spread, alone, model)


@pytest.mark.slow
def test_where_a_worker_was_killed_the_others_end(two, promises):
    # The last test of this pair of processes.
    model, back_end = two
    victim, other = _processes(back_end)
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    with pytest.raises(EdgesimError, match=r"worker 1 of 2 .* was killed by signal 9 while .*memory"):
        back_end.run(promises(model, *EDGES))
    assert not other.is_alive()


@pytest.mark.slow
def test_a_worker_that_ends_in_an_error_of_its_own_points_to_it_and_not_to_memory(make, promises, capfd):
    model, back_end = make("mlp")
    (broken,) = promises(model, [0, 8])
    broken.built = dataclasses.replace(broken.job, phases=(Phase(np.full(8, 10**6), np.array([0, 8])),))
    (worker,) = _started(back_end)._workers
    with pytest.raises(
        EdgesimError,
        match=rf"^worker 1 of 1 \(process {worker.process.pid}\) ended with status 1 while training device 0 in "
        r"round 1; see its error above; learning.back_end = 'loop' shows it here$",
    ):
        back_end.run([broken])
    assert "IndexError" in capfd.readouterr().err


@pytest.mark.slow
def test_a_worker_that_cannot_begin_is_named(data, promises, pulling):
    model = FlatModel(new_model("mlp", SHAPE, CLASSES, 5), CPU)
    back_end = WorkersBackEnd(model, data, functools.partial(os._exit, 7), 1, pulling)
    back_end._workers[0].process.join()
    with pytest.raises(
        EdgesimError,
        match=r"worker 1 of 1 \(process \d+\) ended with status 7 before it started; is edgesim .*__main__.*loop",
    ):
        back_end.run(promises(model, *EDGES))


def test_too_little_shared_memory_is_one_line_and_leaves_no_process(data, pulling):
    """A limit on the size of files holds for shared memory, too."""
    before = multiprocessing.active_children()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, hard))
    try:
        with pytest.raises(NoSharedMemory, match=r"^2 workers need \d+ MiB of shared memory for images and .*'loop'$"):
            _made(data, pulling, "small-cnn", 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert multiprocessing.active_children() == before


def test_closing_ends_the_processes_and_may_be_done_twice(make):
    _, back_end = make("mlp")
    back_end.close()
    back_end.close()
    assert not any(process.is_alive() for process in _processes(back_end))


_ORPHANS = """
import functools, os, sys, numpy as np, torch
from edgesim.learning.algorithms.algorithm import AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Sizes
from edgesim.learning.back_ends.workers import WorkersBackEnd
from edgesim.learning.datasets import Dataset
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import new_model
from edgesim.learning.tensors import DeviceData
from edgesim.streams import Streams
images = np.zeros((4, 1, 4, 4), dtype=np.uint8)
labels = np.arange(4) % 2
data = DeviceData(Dataset("x", labels, labels, 2, (1, 4, 4), lambda: (images, images)), torch.device("cpu"))
build = functools.partial(new_model, "mlp", (1, 4, 4), 2, 0)
averaging = LocalHalf(AveragingOptions(), Sizes(0.0, 0, 1), Streams(0))
back_end = WorkersBackEnd(FlatModel(build(), torch.device("cpu")), data, build, 1, averaging)
while not back_end._workers[0].started:
    for worker in back_end._heard(None):
        back_end._receive(worker, {})
print(back_end._workers[0].process.pid, flush=True)
os.kill(os.getpid(), int(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_workers_of_a_process_that_is_gone_end_too(how, tmp_path, is_gone):
    script = tmp_path / "parent.py"
    script.write_text(f"if __name__ == '__main__':\n    exec({_ORPHANS!r})\n")
    done = subprocess.run([sys.executable, str(script), str(int(how))], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    deadline = time.monotonic() + 30
    while not is_gone(pid):
        assert time.monotonic() < deadline, "the worker outlives its parent"
        time.sleep(0.05)
