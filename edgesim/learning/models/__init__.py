"""Models known by name, torchvision's, and the user's own."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import first_line, imported, look_up
from edgesim.learning.determinism import refused_by_name
from edgesim.learning.models.from_torchvision import PREFIX, from_torchvision
from edgesim.learning.models.plain import afl_cnn, afl_mlp, fedstg_cnn, fedteddi_cnn, linear, mlp, small_cnn
from edgesim.learning.models.resnet import RESNETS
from edgesim.learning.torch_settings import seeded

Builder = Callable[..., nn.Module]
"""Makes a module for images of a shape (C, H, W) and a number of classes, from options by name."""

MODELS: dict[str, Builder] = {
    "linear": linear,
    "mlp": mlp,
    "small-cnn": small_cnn,
    "fedteddi-cnn": fedteddi_cnn,
    "fedstg-cnn": fedstg_cnn,
    "afl-cnn": afl_cnn,
    "afl-mlp": afl_mlp,
    **RESNETS,
}


def make_model(
    name: str,
    image_shape: tuple[int, int, int],
    class_count: int,
    double: bool = False,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> nn.Module:
    """A new model on the CPU: a name of `MODELS`, ``torchvision:NAME`` or the dotted path of a callable.

    The callable, which may be a class, gets the image shape (C, H, W), the number of classes, and the ``options`` as
    keywords, as torchvision's function of that name does. Initial weights come from torch's global generator. With
    ``double`` the module is brought to float64, in which it may have been made as well. Raises `EdgesimError` for
    options that it does not take, and when the result is no module of float32 (or float64) that maps images
    [n, C, H, W] to logits [n, classes], in training and in evaluation alike.
    """
    try:
        builder = _builder(name)
        _check_options(name, builder, image_shape, class_count, options)
        model = builder(image_shape, class_count, **options)
        if double and isinstance(model, nn.Module):
            model = model.double()
        with refused_by_name(name, "cpu"):
            _check(model, image_shape, class_count, torch.float64 if double else torch.float32)
    except EdgesimError:
        raise
    except Exception as error:  # the user's own code may raise anything
        with_options = f" with learning.model_options = {dict(options)}" if options else ""
        raise EdgesimError(
            f"learning.model: {name!r}{with_options} does not fit images of shape {image_shape}: {first_line(error)}",
            "learning.model",
            *(["learning.model_options"] if options else []),
        ) from error
    return model


def new_model(
    name: str,
    image_shape: tuple[int, int, int],
    class_count: int,
    seed: int,
    double: bool = False,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> nn.Module:
    """`make_model` with initial weights from a seed, with ``double`` those of float32 as well."""
    with seeded(torch.device("cpu"), seed):
        return make_model(name, image_shape, class_count, double, options)


def _builder(name: str) -> Builder:
    if name.startswith(PREFIX):
        return from_torchvision(name.removeprefix(PREFIX))
    if "." not in name:
        return look_up(MODELS, name, "learning.model", f"{PREFIX}NAME", "the dotted path of a callable")
    builder: Builder = imported(name, "learning.model")
    if isinstance(builder, nn.Module) or not callable(builder):
        raise EdgesimError(
            f"learning.model: {name!r} is of type {type(builder).__name__}, expected a callable "
            "(image_shape, class_count) that makes a torch.nn.Module",
            "learning.model",
        )
    return builder


def _check_options(
    name: str, builder: Builder, image_shape: tuple[int, int, int], class_count: int, options: Mapping[str, Any]
) -> None:
    """Raise `EdgesimError` for a callable that does not take a shape and a number of classes, or not these options."""
    try:
        signature = inspect.signature(builder)
    except (TypeError, ValueError):
        # Of compiled code, which says itself what it does not take.
        return
    takes_two = False
    try:
        signature.bind_partial(image_shape, class_count)
        takes_two = True
        signature.bind(image_shape, class_count, **options)
    except TypeError as error:
        known = [key for key, parameter in [*signature.parameters.items()][2:] if parameter.kind not in _NOT_NAMED]
        if not takes_two or not (known or options):
            expected = "expected a callable (image_shape, class_count) that makes a torch.nn.Module"
            why = f"has the arguments {signature}, {expected}: {error}"
            raise EdgesimError(f"learning.model: {name!r} {why}", "learning.model") from None
        takes = f"its options are {', '.join(known)}" if known else "it takes no options"
        raise EdgesimError(
            f"learning.model_options: {name!r} cannot be called with them: {error}; {takes}",
            "learning.model_options",
            "learning.model",
        ) from None


_NOT_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _check(model: object, image_shape: tuple[int, int, int], class_count: int, dtype: torch.dtype) -> None:
    """Raise TypeError or ValueError that says what a model lacks; its buffers stay as they are."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"it returned a {type(model).__name__}, expected a torch.nn.Module")
    tensors = (*model.parameters(), *model.buffers())
    if any(tensor.is_floating_point() and tensor.dtype != dtype for tensor in tensors):
        raise TypeError("its parameters and buffers must be float32")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("it has no trainable parameter")
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    images = torch.zeros(2, *image_shape, dtype=dtype)
    with torch.no_grad():
        for training in (True, False):
            logits = model.train(training)(images)
            if not isinstance(logits, Tensor):
                raise TypeError(f"its output is a {type(logits).__name__}, expected a tensor (2, {class_count})")
            if tuple(logits.shape) != (2, class_count):
                raise ValueError(f"2 images give an output of shape {tuple(logits.shape)}, expected (2, {class_count})")
        for buffer, before in buffers:
            buffer.copy_(before)
