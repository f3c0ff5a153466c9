import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.engine.protocols import PROTOCOLS, make_protocol
from edgesim.learning.algorithms.algorithm import AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Sizes
from edgesim.learning.datasets import Dataset
from edgesim.learning.drift.frames import Framed
from edgesim.learning.drift.holdings import Frame
from edgesim.learning.federation import Federation, make_federation
from edgesim.learning.flat import FlatModel
from edgesim.learning.learner import TorchLearner
from edgesim.learning.tensors import DeviceData
from edgesim.streams import Streams

torch.set_num_threads(1)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache that is empty when the test begins."""
    monkeypatch.setenv("EDGESIM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def make_config() -> Callable[..., RunConfig]:
    def make(**sections: Any) -> RunConfig:
        frames = sections.get("drift", {}).get("law", "frames") == "frames"
        data = {"partition": "fedteddi"} if frames else {}
        world = {"data": data | sections.get("data", {}), "learning": {"pretrain": True} | sections.get("learning", {})}
        config = parse(sections | world, "test").resolved()
        stale_weight = PROTOCOLS[config.round.protocol].stale_weight
        return config.model_copy(update={"staleness": config.staleness.resolved(stale_weight)})

    return make


@pytest.fixture
def make_learner(make_config) -> Iterator[Callable[..., TorchLearner]]:
    """A learner of a config's sections, whose start model is not trained yet; it is closed after the test."""
    made = []

    def make(federation: Federation | None = None, **sections: Any) -> TorchLearner:
        config = make_config(**sections)
        streams, rule = Streams(config.seed), make_protocol(config.round).rule
        made.append(TorchLearner(config, federation or make_federation(config, streams), streams, rule=rule))
        return made[-1]

    yield make
    for learner in made:
        learner.close()


@pytest.fixture
def make_dataset() -> Callable[..., Dataset]:
    """A dataset of random pixels with given training labels."""

    def make(labels, shape=(1, 4, 4), class_count=None, seed=0) -> Dataset:
        labels = np.asarray(labels, dtype=np.int64)
        images = np.random.default_rng(seed).integers(0, 256, (len(labels), *shape), dtype=np.uint8)
        return Dataset(
            name="random",
            train_labels=labels,
            test_labels=labels.copy(),
            class_count=class_count or int(labels.max()) + 1,
            image_shape=shape,
            load_images=functools.partial(lambda array: (array, array.copy()), images),
        )

    return make


@pytest.fixture
def make_frames() -> Callable[..., Federation]:
    """A federation from lists of sample indices: one list of devices per frame."""

    def make(dataset: Dataset, *frames: list[list[int]]) -> Federation:
        made = []
        for clients in frames:
            counts = [np.bincount(dataset.train_labels[c], minlength=dataset.class_count) for c in clients]
            made.append(
                Frame(
                    np.array([len(client) for client in clients], dtype=np.int64),
                    np.array(counts, dtype=np.int64),
                    np.unique(dataset.train_labels[np.concatenate(clients)]),
                    np.concatenate(clients).astype(np.int64),
                )
            )
        return Federation(dataset, Framed(made))

    return make


@pytest.fixture
def make_flat() -> Callable[..., tuple[FlatModel, DeviceData]]:
    """A module and a dataset on the CPU."""

    def make(module: torch.nn.Module, dataset: Dataset) -> tuple[FlatModel, DeviceData]:
        device = torch.device("cpu")
        return FlatModel(module, device), DeviceData(dataset, device)

    return make


@pytest.fixture(scope="session")
def averaging() -> LocalHalf:
    """FedAvg."""
    return LocalHalf(AveragingOptions(), Sizes(0.0, 0, 10), Streams(0))
