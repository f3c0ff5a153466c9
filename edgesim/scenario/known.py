"""Facts about data sets, layouts and algorithms, for planning studies."""

from typing import Any

from edgesim.config import DataConfig
from edgesim.devices.topology import load_topology
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.kpfl_settings import tuned, tuned_on
from edgesim.learning.datasets import load_dataset
from edgesim.selection.afl import share_of

__all__ = ["class_count", "has_local_half", "kpfl_of_the_paper", "merges_a_mean", "share_of", "station_count"]


def class_count(dataset: str) -> int:
    """Classes of a data set, a name or a path as ``data.dataset``; raises `EdgesimError`."""
    return load_dataset(DataConfig(dataset=dataset)).class_count


def station_count(layout: str) -> int:
    """Stations of a layout, a name or a path as ``topology.file``; raises `EdgesimError`."""
    return len(load_topology(layout).stations)


def has_local_half(algorithm: str) -> bool:
    """Whether an algorithm trains on devices in a way that other servers can go with (``algorithm.server``)."""
    return "local" in ALGORITHMS[algorithm].halves


def merges_a_mean(algorithm: str) -> bool:
    """Whether an algorithm's model is a mean of updates, so that KPFL can be put around it (``algorithm.kpfl``)."""
    return ALGORITHMS[algorithm].model_is_mean


def kpfl_of_the_paper(algorithm: str, dataset: str, presence: str) -> dict[str, Any]:
    """KPFL's options that its paper tuned for an algorithm and a model of presence; empty where it tuned none."""
    return tuned(algorithm, dataset, presence) if tuned_on(algorithm, dataset, presence) else {}
