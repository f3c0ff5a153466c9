"""What all tests share: hypothesis without wall-clock limits, a cache of start models, scenarios in this process."""

import gc
import os
import runpy
import signal
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pytest
from hypothesis import settings

# Torch, edgesim and typer are imported where they are used: the process that only hands out tests loads this file too.

SCENARIOS = Path(__file__).parents[1] / "scenarios"

# A shell that starts the tests in the background leaves them deaf to interrupts, and so the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


FAMILY = 3
"""Cases of one parametrised test above which the fast tests take a sixth of them; `make test-all` runs all."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow what is left out of large families: always the same cases, at least one of each.

    Nothing is left out of those that are cheap for what they tell, which are marked ``whole_family``.
    """
    families = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("whole_family"):
            families[item.path, item.originalname].append(item)
    for family in families.values():
        quick = [item for item in family if not item.get_closest_marker("slow")]
        numbers = [crc32(item.name.encode()) for item in quick]
        if len(family) > FAMILY and quick and all(number % 6 for number in numbers):
            numbers[numbers.index(min(numbers))] = 0
        for item, number in zip(quick, numbers, strict=True):
            if len(family) > FAMILY and number % 6:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is loaded here stays; to look through it for garbage, now and later, would take seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# A busy machine is no bug; the same examples everywhere make a red run reproducible.
settings.register_profile("edgesim", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("edgesim")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    base = tmp_path_factory.getbasetemp()
    # The processes of pytest-xdist have folders of their own below that of the session.
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    patch.setenv("EDGESIM_CACHE", str(session / "edgesim-cache"))
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="session")
def _no_power_cut():
    """Runs of tests need not outlast a power cut, for which a journal takes a tenth of a short run."""
    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", lambda handle: None)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _same_start_weights():
    """A test that makes a layer of its own gets the same weights whatever ran before it in its process."""
    import torch

    # Not torch.manual_seed, which takes down a traceback for each accelerator that is not there.
    torch.default_generator.manual_seed(0)


@pytest.fixture(scope="session")
def is_gone():
    """Whether the process of an id has ended; one for which no other has waited yet has. Needs /proc."""

    def ask(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    return ask


@pytest.fixture
def studies_here(monkeypatch):
    """Studies without processes of their own, of which each would load the libraries anew."""
    from edgesim.studies import executor

    class Here:
        def __init__(self):
            self.said = []

        def has_room(self):
            return not self.said

        def hand_out(self, order):
            name = order.folder.name
            ending = executor.run_one(order, 1, lambda message: self.said.append((name, message)))
            self.said.append((name, ending))

        def news(self, timeout_s):
            said, self.said = self.said, []
            return said

        def close(self):
            pass

    monkeypatch.setattr("edgesim.studies.pool.ProcessPool.open", lambda *_: Here())


@pytest.fixture(scope="session")
def ray_nodes():
    """A cluster of Ray: a head without processors and two nodes of one each; it takes ten seconds to start."""
    pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    patch, here = pytest.MonkeyPatch(), Path(__file__).parents[1]
    patch.setenv("PYTHONPATH", str(here))
    patch.setenv("RAY_AUTH_MODE", "disabled")
    patch.setenv("RAY_raylet_start_wait_time_s", "120")
    small = {"object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=small | {"include_dashboard": False, "num_cpus": 0})

    def add(**arguments):
        return cluster.add_node(num_cpus=1, **small, **arguments)

    add(), add()
    yield SimpleNamespace(cluster=cluster, add=add, address=cluster.address)
    cluster.shutdown()
    patch.undo()


@pytest.fixture(scope="module")
def ray_actors(ray_nodes):
    """Back ends `ray` of a module share two actors, each of which would load torch for seconds."""
    import ray

    from edgesim.cluster.connection import connected
    from edgesim.learning.back_ends.on_ray import RayBackEnd

    patch, made = pytest.MonkeyPatch(), []
    patch.setattr(RayBackEnd, "_drop", lambda self, actor: self._actors.remove(actor))

    def shared(self):
        if len(self._actors) == len(made):
            made.append(self._make.remote())
        return made[len(self._actors)]

    patch.setattr(RayBackEnd, "_new_actor", shared)
    with connected(ray_nodes.address, "a test"):
        yield
        for actor in made:
            ray.kill(actor)
    patch.undo()


def _save_as_text(figure, stem, formats=("png", "svg")):
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
    stem.parent.mkdir(parents=True, exist_ok=True)
    for file in files:
        file.write_text(f"{len(figure.axes)} panels of {file.name}")
    return files


@pytest.fixture
def figures_as_text(monkeypatch):
    """Figures are made, but a line of text is saved for each, where drawing it would take most of the time."""
    for module in ("album", "style"):
        monkeypatch.setattr(f"edgesim.plots.{module}.save", _save_as_text)


@pytest.fixture
def drawing_scenario(tmp_path, monkeypatch, studies_here):
    """Starts a scenario as typed, in ``tmp_path``, but in this process."""
    import typer
    from typer.testing import CliRunner

    monkeypatch.syspath_prepend(SCENARIOS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def start(script, *arguments):
        app = typer.Typer()
        app.command()(runpy.run_path(str(SCENARIOS / script))["main"])
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return start


@pytest.fixture
def scenario(drawing_scenario, monkeypatch):
    """Starts a scenario as `drawing_scenario` does, without a study's figures."""
    monkeypatch.setattr("edgesim.scenario.closing.draw", lambda folders, out, formats: [])
    return drawing_scenario


@pytest.fixture(scope="session")
def peak_bytes():
    """The most that tensors which a function makes take at one time, as PyTorch's profiler sees them on a CPU."""
    from torch.profiler import ProfilerActivity, profile

    def measure(work):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            work()
        events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
        held = most = 0
        for event in sorted(events, key=lambda event: event.start_ns()):
            held += event.nbytes()
            most = max(most, held)
        return most

    return measure
