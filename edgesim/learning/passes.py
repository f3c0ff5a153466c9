"""Rows of a batch that fit into memory, and passes over many rows on several threads."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import update_wrapper
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from edgesim.learning.flat import FlatModel

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
_Rest = ParamSpec("_Rest")
_Trial = Callable[Concatenate[FlatModel, Tensor, _Rest], _Result]

#: Most rows of a batch that is not for training.
ROWS = 1024
#: Of convolutional nets on a CPU: few enough that activations of small images stay in its cache.
ROWS_IN_CACHE = 64


def in_cache(model: FlatModel) -> bool:
    """Whether passes run fastest on as few rows as the cache holds."""
    return model.channels_last and model.device.type == "cpu"


def once_per_model(trial: _Trial[_Rest, _Result]) -> _Trial[_Rest, _Result]:
    """Make a trial pass of a row, [1, ...], once for each model and shape of the row, on which its result depends."""
    results = WeakKeyDictionary[FlatModel, dict[object, _Result]]()

    def result(model: FlatModel, image: Tensor, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Result:
        of_model, key = results.setdefault(model, {}), (image.shape, *rest)
        if key not in of_model:
            of_model[key] = trial(model, image, *rest, **named)
        return of_model[key]

    update_wrapper(result, trial)
    return result


@contextmanager
def kept_for_backward() -> Iterator[dict[int, int]]:
    """Bytes of the tensors that forward passes within the block store for backward passes, weights too, by address."""
    stored: dict[int, int] = {}

    def store(tensor: Tensor) -> Tensor:
        stored[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(store, lambda tensor: tensor):
        yield stored


def kept_bytes(model: FlatModel, *inputs: Tensor) -> int:
    """Bytes that a forward pass stores for the backward pass, without the weights."""
    weights = {parameter.data_ptr() for parameter in model.parameters()}
    with kept_for_backward() as stored:
        model.module(*inputs)
    return sum(size for place, size in stored.items() if place not in weights)


@once_per_model
def rows_at_once(model: FlatModel, image: Tensor, budget_mib: int) -> int:
    """Rows of a forward and backward pass within a budget, at least one; ``image`` is a row, [1, ...].

    A trial with that row measures the memory of a row; its gradients count as much again.
    """
    if in_cache(model):
        return ROWS_IN_CACHE
    return max(1, min(ROWS, (budget_mib << 20) // max(1, 2 * kept_bytes(model, image))))


def whole_segments(sizes: Sequence[int], at_once: int) -> Iterator[tuple[slice, slice]]:
    """Groups of successive segments of at most ``at_once`` rows, or of a single larger one, and their rows."""
    edges = [0, *itertools.accumulate(sizes)]
    first = 0
    while first < len(sizes):
        last = first + 1
        while last < len(sizes) and edges[last + 1] - edges[first] <= at_once:
            last += 1
        yield slice(first, last), slice(edges[first], edges[last])
        first = last


def side_by_side(
    model: FlatModel, cores: int, work: Callable[[_Part], _Result], parts: Sequence[_Part]
) -> list[_Result]:
    """Results of ``work`` for each part, in order; of a convolutional net on a CPU, with a thread per core.

    A part runs on one thread whatever their number, so the results have the same bytes.
    """
    if not in_cache(model) or cores < 2 or len(parts) < 2:
        return list(map(work, parts))
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(work, parts))
