"""Facts about data sets, layouts and algorithms, for planning studies."""

from pathlib import Path
from typing import Any

from edgesim.config import DataConfig
from edgesim.devices.topology import load_topology
from edgesim.learning.algorithms import ALGORITHMS, WRAPPERS
from edgesim.learning.algorithms.server_half import merges_models
from edgesim.learning.datasets import load_dataset
from edgesim.selection.afl import share_of

__all__ = [
    "class_count",
    "has_local_half",
    "merges_a_mean",
    "published_options",
    "share_of",
    "station_count",
    "test_shape",
]


def class_count(dataset: str) -> int:
    """Classes of a data set, a name or a path as ``data.dataset``; raises `EdgesimError`."""
    return load_dataset(DataConfig(dataset=dataset)).class_count


def test_shape(dataset: str, folder: Path) -> tuple[int, int, int, int]:
    """Shape of the test images of a data set, as ``data.dataset`` names it: count, channels, height and width.

    Raises `EdgesimError`.
    """
    data = load_dataset(DataConfig(dataset=dataset, folder=str(folder)))
    return (len(data.test_labels), *data.image_shape)


def station_count(layout: str) -> int:
    """Stations of a layout, a name or a path as ``topology.file``; raises `EdgesimError`."""
    return len(load_topology(layout).stations)


def has_local_half(algorithm: str) -> bool:
    """Whether an algorithm trains on devices in a way that other servers can go with (``algorithm.server``)."""
    return "local" in ALGORITHMS[algorithm].halves


def merges_a_mean(algorithm: str) -> bool:
    """Whether an algorithm's model is a mean of updates, so that another server can be put around its own."""
    return merges_models(ALGORITHMS[algorithm].Server.merges)


def published_options(wrapper: str, algorithm: str, dataset: str, presence: str) -> dict[str, Any]:
    """Options of a wrapper that its paper tuned for an algorithm and a model of presence; empty where it tuned none."""
    return WRAPPERS[wrapper].published(algorithm, dataset, presence)
