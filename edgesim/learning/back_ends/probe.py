"""A trial of a stack's forward pass against the module's own: their agreement, and the memory of a row."""

from functools import partial

import torch
from torch import Tensor

from edgesim.base.errors import EdgesimError
from edgesim.learning import dropout
from edgesim.learning.algorithms.records import Outputs
from edgesim.learning.back_ends.layers import Forward
from edgesim.learning.flat import FlatModel
from edgesim.learning.passes import kept_for_backward
from edgesim.learning.torch_settings import memory_lasts, seeded

_ROWS = 4
_REMEDY = "choose a smaller learning.model, or set learning.back_end = 'loop'"
_TOLERANCE = 1e-2
#: Of the largest weight or buffer: what rounding leaves of a running mean that should be zero.
_NOISE = 1e-6


class NotStackable(Exception):  # noqa: N818 - reads as a finding
    """Raised for a module that cannot be stacked; its text says why."""


def probe(
    model: FlatModel, forward: Forward, image_shape: tuple[int, ...], features: bool = False, frozen: bool = False
) -> tuple[int, int]:
    """Compare two clients' stacked logits and buffers with each one's own; raises `NotStackable` where they differ.

    Compares features as well and, with ``frozen``, outputs in evaluation mode.

    Returns the calls of dropout layers in a forward pass, and the bytes kept for the backward pass per row of a batch
    and client.

    The module's weights are as before afterwards; its mode is training. Raises `EdgesimError` when memory runs out.
    """
    before = model.snapshot()
    random = torch.Generator().manual_seed(0)
    images = torch.randn(_ROWS, 2, *image_shape, generator=random).to(before)
    # In the memory layout in which a run's images come.
    images = model.inputs(images.flatten(0, 1)).view(images.shape)
    rows = torch.stack([before, 1.1 * before])
    try:
        with memory_lasts("trying the model on 2 devices at once", _REMEDY, "learning.model"):
            with seeded(before.device, 0):
                alone = [_own(model, rows[seed], images[:, seed], seed, features) for seed in range(2)]
            masks = model.masks.calls
            model.load(before)
            # In memory of their own, so that what a layer keeps of them is not taken for a cost of rows.
            parts = [part.clone(memory_format=torch.contiguous_format) for part in model.split(rows)]
            tensors = dict(zip(model.names, parts, strict=True))
            for part in parts[: len(model.parameters())]:
                part.requires_grad_()
            words = torch.tensor([[dropout.key(seed, 0, layer) for layer in range(masks)] for seed in range(2)])
            keys = words.to(before.device, torch.int32).reshape(2, masks, 2)
            with kept_for_backward() as kept:
                stacked = forward(tensors, keys, images)
            stacked.logits.sum().backward()  # type: ignore[no-untyped-call]
            agree = not frozen or _frozen_alike(model, forward, rows, keys, images, features)
    except EdgesimError:
        raise
    except Exception as error:  # a user's module may raise anything
        # The first sentence; what torch says behind it is for its own developers.
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise NotStackable(reason or type(error).__name__) from error
    finally:
        model.load(before)
    # Logits of training do not depend on running statistics, so the buffers are held against each other as well.
    for client, (own, own_weights) in enumerate(alone):
        noise = _NOISE * _largest(own_weights)
        buffers = zip((part[client] for part in parts), model.split(own_weights), strict=True)
        agree = agree and _same(stacked, client, own) and all(_alike(*pair, noise) for pair in buffers)
    if not agree:
        raise NotStackable("stacked, it gives other results than alone")
    weights = {part.data_ptr() for part in parts}
    return masks, sum(size for place, size in kept.items() if place not in weights) // (2 * _ROWS)


@torch.no_grad()
def _own(
    model: FlatModel, weights: Tensor, images: Tensor, seed: int, features: bool, train: bool = True
) -> tuple[Outputs, Tensor]:
    """Outputs of the module itself, and its weights and buffers afterwards, [P]."""
    model.load(weights)
    model.module.train(train)
    model.masks.begin(partial(dropout.key, seed, 0))
    images = model.inputs(images)
    return model.outputs(images) if features else Outputs(model.module(images)), model.snapshot()


@torch.no_grad()
def _frozen_alike(
    model: FlatModel, forward: Forward, rows: Tensor, keys: Tensor, images: Tensor, features: bool
) -> bool:
    """Whether outputs in evaluation mode agree, of each client's weights [2, P] and of the first one's for both."""
    for weights in (rows, rows[:1]):
        stacked = forward(dict(zip(model.names, model.split(weights), strict=True)), keys, images, train=False)
        for client in range(2):
            own, _ = _own(model, weights[client % len(weights)], images[:, client], 0, features, train=False)
            if not _same(stacked, client, own):
                return False
    model.module.train()
    return True


def _same(stacked: Outputs, client: int, own: Outputs) -> bool:
    """Whether a client's rows of stacked outputs, [n, S, ...], equal those of the module alone, [n, ...]."""
    pairs = [(stacked.logits, own.logits), (stacked.last_input, own.last_input)]
    return all(_alike(of_all[:, client], alone) for of_all, alone in pairs if of_all is not None and alone is not None)


def _alike(stacked: Tensor, expected: Tensor, noise: float = 0.0) -> bool:
    return torch.allclose(stacked, expected, rtol=_TOLERANCE, atol=_TOLERANCE * _largest(expected) + noise)


def _largest(tensor: Tensor) -> float:
    """The largest size among the finite numbers; 0 where there are none."""
    sizes = tensor[tensor.isfinite()].abs()
    return float(sizes.max()) if len(sizes) else 0.0
