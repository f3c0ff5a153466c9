"""What many frozen models make of the same images: several small dense ones at once, others one after another."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from edgesim.algorithms.algorithm import Outputs
from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.learning.back_ends.layers import Forward, is_shallow_and_dense, layer_by_layer
from edgesim.learning.flat import FlatModel
from edgesim.learning.passes import kept_for_backward
from edgesim.learning.tensors import DeviceData


def outputs_of(
    model: FlatModel, models: Sequence[Tensor], images: Tensor, budget_mib: int
) -> Iterator[tuple[slice, Outputs]]:
    """Outputs [S, n, ...] of some of the models of weights [P] at a time, with their places; `Workbench.outputs_of`.

    ``model`` is what they are weights of; its own may be others afterwards, and its mode is evaluation. Which way it
    goes is a rule on the model alone, never on time: results of both differ by rounding.
    """
    forward = layer_by_layer(model, model.head is not None) if is_shallow_and_dense(model.module) else None
    if forward is None or len(models) < 2:
        return _one_by_one(model, models, images)
    bytes_of_one = models[0].nbytes + activation_bytes(model, images.shape[1:]) * len(images)
    return _together(model, forward, models, images, max(1, (budget_mib << 20) // bytes_of_one))


def activation_bytes(model: FlatModel, image_shape: Sequence[int]) -> int:
    """What a model keeps of one image for the gradient to it."""
    model.module.eval()
    image = model.inputs(torch.zeros(1, *image_shape, device=model.device)).requires_grad_()
    weights = {parameter.data_ptr() for parameter in model.parameters()}
    with kept_for_backward() as kept:
        model.module(image)
    return sum(size for place, size in kept.items() if place not in weights)


def refuse_without_brightness(data: DeviceData, config: RunConfig) -> None:
    """Raise `EdgesimError` where no images can be made like those of a data set."""
    if data.brightest is None:
        raise EdgesimError(
            f"algorithm.kpfl.keep = 'improved': the server makes images, and those of data.dataset = "
            f"{config.data.dataset!r} are tables, or have no largest value; set it to 'first'",
            "algorithm.kpfl.keep",
            "data.dataset",
        )


def _one_by_one(model: FlatModel, models: Sequence[Tensor], images: Tensor) -> Iterator[tuple[slice, Outputs]]:
    for number, weights in enumerate(models):
        model.load(weights)
        model.module.eval()
        outputs = Outputs(model.module(images)) if model.head is None else model.outputs(images)
        last = None if outputs.last_input is None else outputs.last_input[None]
        yield slice(number, number + 1), Outputs(outputs.logits[None], last)


def _together(
    model: FlatModel, forward: Forward, models: Sequence[Tensor], images: Tensor, at_once: int
) -> Iterator[tuple[slice, Outputs]]:
    no_keys = torch.empty(0, dtype=torch.int32, device=images.device)
    for first in range(0, len(models), at_once):
        some = torch.stack(list(models[first : first + at_once]))
        tensors = dict(zip(model.names, model.split(some), strict=True))
        shown = images[:, None].expand(-1, len(some), *images.shape[1:])
        outputs = forward(tensors, no_keys, shown, train=False)
        last = None if outputs.last_input is None else outputs.last_input.transpose(0, 1)
        yield slice(first, first + len(some)), Outputs(outputs.logits.transpose(0, 1), last)
