"""Refusal, before a run, of models with operations that torch has in no deterministic version."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
import torch.nn.functional as F

from edgesim.base.errors import EdgesimError
from edgesim.learning import dropout
from edgesim.learning.flat import FlatModel
from edgesim.learning.torch_settings import seeded


@contextmanager
def refused_by_name(name: str, kind: str) -> Iterator[None]:
    """Turn torch's error about an operation without deterministic version into an `EdgesimError` about the model."""
    try:
        yield
    except RuntimeError as error:
        operation, _, rest = str(error).partition(" does not have a deterministic implementation")
        if not rest:
            raise
        elsewhere = "" if kind == "cpu" else "set learning.device = 'cpu', or "
        raise EdgesimError(
            f"learning.model: {name!r} uses {operation}, which is not deterministic on a {kind}; {elsewhere}"
            "choose a model without it",
            "learning.model",
        ) from None


def refuse_nondeterminism(model: FlatModel, name: str, image_shape: tuple[int, int, int]) -> None:
    """Raise `EdgesimError` for a model whose training needs an operation that is not deterministic on its device.

    Tried on one step with two blank images, under deterministic algorithms; weights and buffers stay as they are. On a
    GPU these are, among others, the backward passes of adaptive pooling (of averages to one pixel excepted), of
    reflection padding and of interpolation (`torch.use_deterministic_algorithms`).
    """
    before = model.snapshot()
    images = model.inputs(torch.zeros(2, *image_shape, device=model.device))
    labels = torch.zeros(2, dtype=torch.int64, device=model.device)
    model.module.train()
    try:
        with refused_by_name(name, model.device.type), seeded(model.device, 0):
            model.masks.begin(partial(dropout.key, 0, 0))
            with model.autocast():
                logits = model.module(images)
            F.cross_entropy(logits.to(model.dtype), labels).backward()  # type: ignore[no-untyped-call]
    finally:
        model.load(before)
        model.gradient.zero_()
