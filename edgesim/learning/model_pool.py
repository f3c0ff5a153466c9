"""Outputs of many frozen models on the same images: small dense models at once, others one after another."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.algorithms.records import Frozen, Outputs
from edgesim.learning.back_ends.layers import Forward, Tensors, is_shallow_and_dense, layer_by_layer
from edgesim.learning.flat import FlatModel
from edgesim.learning.passes import kept_bytes
from edgesim.learning.tensors import DeviceData


def frozen(model: FlatModel, models: Sequence[Tensor], image_shape: tuple[int, ...], room_bytes: int) -> Frozen:
    """Models of fixed weights [P] as one callable, which yields their outputs on images of a shape.

    ``model`` is the module that plays them; its weights may be others afterwards, and its mode is evaluation. Whether
    models are played together depends on the model alone, never on time: results of both ways differ by rounding.
    Beside the models a pass and its gradient take up to ``room_bytes``, unless one model alone takes more
    (`pass_bytes`).
    """
    forward = _stacked_forward(model)
    if forward is None or len(models) < 2:
        return partial(_one_by_one, model, models)
    return _together(model, forward, models, _row_bytes(model, image_shape), room_bytes)


def pass_bytes(model: FlatModel, image_shape: tuple[int, ...], images: int, models: int) -> tuple[int, int]:
    """Bytes of a pass of models over images and of its gradient: with one model at a time, and at most.

    The most is that of all models at once where they are played together.
    """
    of_one = images * _row_bytes(model, image_shape)
    if models < 2 or _stacked_forward(model) is None:
        return of_one, of_one
    copied = model.weights.nbytes + of_one
    return copied, models * copied


def _stacked_forward(model: FlatModel) -> Forward | None:
    return layer_by_layer(model, model.head is not None) if is_shallow_and_dense(model.module) else None


def _row_bytes(model: FlatModel, image_shape: tuple[int, ...]) -> int:
    """Bytes of a pass over one image: what the pass keeps for the backward pass, and as much again for gradients."""
    model.module.eval()
    image = model.inputs(torch.zeros(1, *image_shape, device=model.device)).requires_grad_()
    return 2 * kept_bytes(model, image)


def refuse_without_brightness(data: DeviceData, config: RunConfig, key: str, value: str, remedy: str) -> None:
    """Raise `EdgesimError` for a data set of which the server cannot make images: pixels without a largest value.

    ``value`` of ``key`` asks for images.
    """
    if data.brightest is None:
        raise EdgesimError(
            f"{key} = {value!r}: the server makes images, and those of data.dataset = "
            f"{config.data.dataset!r} are tables, or have no largest value; {remedy}",
            key,
            "data.dataset",
        )


def _one_by_one(model: FlatModel, models: Sequence[Tensor], images: Tensor) -> Iterator[tuple[slice, Outputs]]:
    for number, weights in enumerate(models):
        model.load(weights)
        model.module.eval()
        # Gradients to the weights would be worked out in vain.
        model.module.requires_grad_(False)
        try:
            outputs = model.outputs(images)
        finally:
            for parameter in model.parameters():
                parameter.requires_grad_()
        yield slice(number, number + 1), outputs.each(lambda tensor: tensor[None])


def _together(model: FlatModel, forward: Forward, models: Sequence[Tensor], row_bytes: int, room_bytes: int) -> Frozen:
    own_bytes = models[0].nbytes
    no_keys = torch.empty(0, dtype=torch.int32, device=model.device)

    def parts(at_once: int) -> Iterator[tuple[slice, Tensors]]:
        for first in range(0, len(models), at_once):
            some = torch.stack(list(models[first : first + at_once]))
            yield slice(first, first + len(some)), dict(zip(model.names, model.split(some), strict=True))

    whole: list[tuple[slice, Tensors]] = []

    def play(images: Tensor) -> Iterator[tuple[slice, Outputs]]:
        at_once = max(1, room_bytes // (own_bytes + row_bytes * len(images)))
        if at_once < len(models):
            whole.clear()
        elif not whole:
            # Where all have room they are put together once, for all images.
            whole.extend(parts(len(models)))
        for places, tensors in whole or parts(at_once):
            shown = images[:, None].expand(-1, places.stop - places.start, *images.shape[1:])
            outputs = forward(tensors, no_keys, shown, train=False)
            yield places, outputs.each(lambda tensor: tensor.transpose(0, 1))

    return play
