"""What many frozen models make of the same images: several small dense ones at once, others one after another."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from edgesim.algorithms.algorithm import Frozen, Outputs
from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.learning.back_ends.layers import Forward, Tensors, is_shallow_and_dense, layer_by_layer
from edgesim.learning.flat import FlatModel
from edgesim.learning.passes import kept_for_backward
from edgesim.learning.tensors import DeviceData


def frozen(model: FlatModel, models: Sequence[Tensor], image_shape: tuple[int, ...], budget_mib: int) -> Frozen:
    """Models of weights [P], to be asked about images of a shape.

    ``model`` is what they are weights of; its own may be others afterwards, and its mode is evaluation. Which way it
    goes is a rule on the model alone, never on time: results of both differ by rounding.
    """
    forward = layer_by_layer(model, model.head is not None) if is_shallow_and_dense(model.module) else None
    if forward is None or len(models) < 2:
        return partial(_one_by_one, model, models)
    return _together(model, forward, models, activation_bytes(model, image_shape), budget_mib << 20)


def activation_bytes(model: FlatModel, image_shape: tuple[int, ...]) -> int:
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
        # Gradients to the weights would be worked out in vain.
        model.module.requires_grad_(False)
        try:
            outputs = Outputs(model.module(images)) if model.head is None else model.outputs(images)
        finally:
            for parameter in model.parameters():
                parameter.requires_grad_()
        last = None if outputs.last_input is None else outputs.last_input[None]
        yield slice(number, number + 1), Outputs(outputs.logits[None], last)


def _together(
    model: FlatModel, forward: Forward, models: Sequence[Tensor], row_bytes: int, budget_bytes: int
) -> Frozen:
    own_bytes = models[0].nbytes
    no_keys = torch.empty(0, dtype=torch.int32, device=model.device)

    def parts(at_once: int) -> Iterator[tuple[slice, Tensors]]:
        for first in range(0, len(models), at_once):
            some = torch.stack(list(models[first : first + at_once]))
            yield slice(first, first + len(some)), dict(zip(model.names, model.split(some), strict=True))

    # Where all have room they are put together once, for all images.
    whole = list(parts(len(models))) if len(models) * own_bytes <= budget_bytes // 2 else None

    def play(images: Tensor) -> Iterator[tuple[slice, Outputs]]:
        at_once = max(1, budget_bytes // (own_bytes + row_bytes * len(images)))
        for places, tensors in whole if whole and at_once >= len(models) else parts(at_once):
            shown = images[:, None].expand(-1, places.stop - places.start, *images.shape[1:])
            outputs = forward(tensors, no_keys, shown, train=False)
            last = None if outputs.last_input is None else outputs.last_input.transpose(0, 1)
            yield places, Outputs(outputs.logits.transpose(0, 1), last)

    return play
