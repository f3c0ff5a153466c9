from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from edgesim.learning.datasets import Dataset
from edgesim.learning.flat import FlatModel
from edgesim.learning.tensors import DeviceData
from edgesim.learning.trainer import Job, Promise

SHAPE, CLASSES = (3, 16, 16), 4
CPU = torch.device("cpu")


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

    def make(model: FlatModel, *edges: list[int], augmented=False, **given) -> list[Promise]:
        """``given`` are fields of the jobs: one value for all, or each job's own."""
        random = np.random.default_rng(1)
        fields = {
            name: np.broadcast_to(values, len(edges)).tolist()
            for name, values in ({"lr": 0.02, "momentum": 0.5} | given).items()
        }
        start = model.snapshot()
        made = []
        for n, part in enumerate(edges):
            samples = random.integers(0, 96, part[-1])
            changes = random.integers(0, [2, 9, 9], (part[-1], 3)) if augmented else None
            own = {name: values[n] for name, values in fields.items()}
            made.append(Promise(Job(n, 1, 100 + n, samples, np.array(part), **own, changes=changes), start))
        return made

    return make
