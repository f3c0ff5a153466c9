"""How many rows of a batch have room in memory, and how passes over many rows are shared out."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

from edgesim.learning.flat import FlatModel

_Part = TypeVar("_Part")
_Found = TypeVar("_Found")

#: Most rows of a batch that is not for training.
ROWS = 1024
#: Of convolutional nets on a CPU: few enough that activations of small images stay in its cache.
ROWS_IN_CACHE = 64


def in_cache(model: FlatModel) -> bool:
    """Whether passes run fastest on as few rows as the cache holds."""
    return model.channels_last and model.device.type == "cpu"


@contextmanager
def kept_for_backward() -> Iterator[dict[int, int]]:
    """Sizes in bytes of the tensors that forward passes within it keep, weights included, by address."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield kept


def kept_bytes(model: FlatModel, *inputs: Tensor) -> int:
    """What a forward pass keeps for the backward pass, without the weights."""
    weights = {parameter.data_ptr() for parameter in model.parameters()}
    with kept_for_backward() as kept:
        model.module(*inputs)
    return sum(size for place, size in kept.items() if place not in weights)


def rows_at_once(model: FlatModel, image: Tensor, budget_mib: int) -> int:
    """How many rows a forward and a backward pass may take together, at least one; ``image`` is one row, [1, ...].

    A trial with that row tells what a row costs; its gradients count as much again.
    """
    if in_cache(model):
        return ROWS_IN_CACHE
    return max(1, min(ROWS, (budget_mib << 20) // max(1, 2 * kept_bytes(model, image))))


def whole_segments(sizes: Sequence[int], at_once: int) -> Iterator[tuple[slice, slice]]:
    """Successive segments that have room together, or one that has none by itself, and their rows among all."""
    edges = [0, *itertools.accumulate(sizes)]
    first = 0
    while first < len(sizes):
        last = first + 1
        while last < len(sizes) and edges[last + 1] - edges[first] <= at_once:
            last += 1
        yield slice(first, last), slice(edges[first], edges[last])
        first = last


def side_by_side(model: FlatModel, cores: int, work: Callable[[_Part], _Found], parts: Sequence[_Part]) -> list[_Found]:
    """What work gives for each part, in order; of a convolutional net on a CPU, on as many threads as there are cores.

    A part runs on one thread whatever their number, so the results have the same bytes.
    """
    if not in_cache(model) or cores < 2 or len(parts) < 2:
        return list(map(work, parts))
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(work, parts))
