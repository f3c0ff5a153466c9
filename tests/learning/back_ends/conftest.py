import dataclasses
import functools
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from edgesim.config import LearningConfig
from edgesim.learning.algorithms.algorithm import AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Phase, Sizes
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.datasets import Dataset
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, Optimiser, Promise
from edgesim.learning.models import new_model
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible
from edgesim.streams import Streams

SHAPE, CLASSES = (3, 16, 16), 4
CPU = torch.device("cpu")
DEFAULTS = {
    "lr": 0.02, "momentum": 0.5, "weight_decay": 0.0, "clip_norm": None, "persist_momentum": False, "kind": "sgd",
    "scale": 1.0,
}  # fmt: skip


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    labels = np.arange(96) % CLASSES
    images = np.random.default_rng(0).integers(0, 256, (96, *SHAPE), dtype=np.uint8)
    return Dataset("random", labels, labels.copy(), CLASSES, SHAPE, lambda: (images, images.copy()))


@pytest.fixture(scope="session")
def data(dataset) -> DeviceData:
    return DeviceData(dataset, CPU)


@pytest.fixture
def flat() -> Callable[..., FlatModel]:
    """A model on the CPU with weights from a seed."""

    def make(build: Callable[[], nn.Module], dtype: torch.dtype = torch.float32, mixed: bool = False) -> FlatModel:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return FlatModel(build().to(dtype), CPU, mixed)

    return make


@pytest.fixture
def promises() -> Callable[..., list[Promise]]:
    """Jobs with given edges that start from a model's weights; each call makes the same ones."""

    def make(model: FlatModel, *edges: list[int], augmented=False, **fields) -> list[Promise]:
        """``fields`` are one value for all jobs, or each job's own.

        They are those of the optimiser; ``scale``, which multiplies the start weights; ``velocity``, by how much of the
        weights the job begins with; and else what is given, of which ``shift`` is how large a random one is.
        """
        random = np.random.default_rng(1)
        each = {name: np.broadcast_to(values, len(edges)).tolist() for name, values in (DEFAULTS | fields).items()}
        start = model.snapshot()
        made = []
        for n, part in enumerate(edges):
            samples = random.integers(0, 96, part[-1])
            changes = random.integers(0, [2, 9, 9], (part[-1], 3)) if augmented else None
            own = {name: values[n] for name, values in each.items()}
            optimiser = Optimiser(*(own.pop(field.name) for field in dataclasses.fields(Optimiser)))
            given = {"start": own.pop("scale") * start}
            if shift := own.pop("shift", 0.0):
                drawn = torch.randn(model.trainable, generator=torch.Generator().manual_seed(n))
                given["shift"] = shift * drawn.to(start)
            given |= {name: torch.tensor(value) for name, value in own.items()}
            velocity = given.pop("velocity", torch.zeros(())).to(start) * start[: model.trainable]
            phase = Phase(samples, np.array(part), changes)
            job = Job(n, 1, 100 + n, (phase,), given, optimiser, velocity=velocity if velocity.any() else None)
            made.append(Promise(n, 1, job))
        return made

    return make


@pytest.fixture(scope="session")
def pulling() -> LocalHalf:
    """Of a module that processes started by a test can import."""
    folder = str(Path(__file__).parent)
    sys.path.insert(0, folder)
    try:
        from pulling import Pulling

        yield Pulling(AveragingOptions(), Sizes(0.0, 0, 10), Streams(0))
    finally:
        sys.path.remove(folder)


@pytest.fixture
def over_actors(data, pulling, ray_nodes, monkeypatch):
    """Back ends of the cluster, closed after the test."""
    from edgesim.learning.back_ends.on_ray import RayBackEnd

    made = []
    monkeypatch.setenv("RAY_ADDRESS", ray_nodes.address)

    def build(**learning):
        learning = LearningConfig(**({"model": "fedteddi-cnn", "back_end": "ray", "workers": 2} | learning))
        builder = functools.partial(new_model, learning.model, SHAPE, CLASSES, 5)
        model = FlatModel(builder(), CPU)
        # The nodes do not have the module of the algorithm.
        own_code = {"pulling": Path(__file__).with_name("pulling.py")}
        made.append(RayBackEnd(learning, model, data, builder, pulling, lambda: own_code))
        return model, made[-1]

    yield build
    for back_end in made:
        back_end.close()


@pytest.fixture
def has_the_bits(data, pulling):
    """Asserts that promises brought exactly what the loop brings of others that are like them."""

    def check(spread, alone, model):
        with reproducible(CPU):
            LoopBackEnd(model, data, pulling).run(alone)
        for one, other in zip(spread, alone, strict=True):
            assert torch.equal(one.result.update, other.result.update)
            velocities = one.result.velocity, other.result.velocity
            assert velocities == (None, None) or torch.equal(*velocities)
            figures = ("loss", "accuracy", "update_norm", "loss_rms")
            assert [getattr(one.result, name) for name in figures] == [getattr(other.result, name) for name in figures]
            for mine, theirs in ((one.result.up, other.result.up), (one.result.keeps, other.result.keeps)):
                assert mine.keys() == theirs.keys() != set()
                for name, tensor in theirs.items():
                    assert mine[name].dtype == tensor.dtype
                    assert torch.equal(mine[name], tensor), name

    return check
