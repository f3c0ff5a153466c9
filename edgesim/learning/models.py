"""Models known by name, and the user's own."""

import difflib
import importlib
import inspect
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from edgesim.errors import EdgesimError

Builder = Callable[[tuple[int, int, int], int], nn.Module]

_GROUPS = 8


def mlp(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """One hidden layer of 32 ReLU units: 64-32-10 on digits."""
    channels, height, width = image_shape
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, 32), nn.ReLU(), nn.Linear(32, class_count))


def fedteddi_cnn(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """FedTeddi's CNN for CIFAR-10 (section V-A): 558,802 parameters with padding 1 and groups of 8."""
    channels, height, width = image_shape

    def convolution(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(_GROUPS, outputs), nn.ReLU()]

    return nn.Sequential(
        *convolution(channels, 32),
        *convolution(32, 32),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        *convolution(32, 64),
        *convolution(64, 64),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), 120),
        nn.ReLU(),
        nn.Linear(120, class_count),
    )


def resnet18_gn(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """ResNet-18 with group normalisation and the stem for small images (3x3, no max-pool)."""
    from torchvision.models import resnet18

    model: nn.Module = resnet18(num_classes=class_count, norm_layer=partial(nn.GroupNorm, _GROUPS))
    model.conv1 = nn.Conv2d(image_shape[0], 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


MODELS: dict[str, Builder] = {"mlp": mlp, "fedteddi-cnn": fedteddi_cnn, "resnet18-gn": resnet18_gn}


def make_model(name: str, image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """A new model on the CPU, by name or by the dotted path of a callable.

    The callable gets the image shape (C, H, W) and the number of classes. Initial weights come from torch's
    global generator. Raises `EdgesimError` when the result is no module of float32 that maps images
    [n, C, H, W] to logits [n, classes].
    """
    try:
        model = _builder(name)(image_shape, class_count)
        if not isinstance(model, nn.Module):
            raise TypeError(f"it returned a {type(model).__name__}, expected a torch.nn.Module")
        if any(tensor.dtype != torch.float32 for tensor in _floats(model)):
            raise TypeError("its parameters and buffers must be float32")
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise ValueError("it has no trainable parameter")
        model.eval()
        with torch.no_grad():
            shape = tuple(model(torch.zeros(2, *image_shape)).shape)
        if shape != (2, class_count):
            raise ValueError(f"2 images give an output of shape {shape}, expected (2, {class_count})")
    except EdgesimError:
        raise
    except Exception as error:  # the user's own code may raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EdgesimError(f"learning.model: {name!r} does not fit images of shape {image_shape}: {reason}") from error
    return model


def source_text(name: str) -> str:
    """Source of the file in which a model is defined, as far as it can be read: a part of cache keys."""
    try:
        return inspect.getsource(inspect.getmodule(_builder(name)) or _builder(name))
    except (OSError, TypeError):
        return ""


def _builder(name: str) -> Builder:
    if name in MODELS:
        return MODELS[name]
    module_name, _, attribute = name.rpartition(".")
    if not module_name:
        near = difflib.get_close_matches(name, MODELS, n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise EdgesimError(
            f"learning.model: unknown {name!r}{hint} (known: {', '.join(MODELS)}, or the dotted path of a callable)"
        )
    try:
        builder: Builder = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise EdgesimError(f"learning.model: cannot import {name!r}: {error}; is its folder on PYTHONPATH?") from None
    if not callable(builder):
        raise EdgesimError(f"learning.model: {name!r} is not callable; expected a callable(image_shape, class_count)")
    return builder


def _floats(model: nn.Module) -> list[torch.Tensor]:
    return [tensor for tensor in (*model.parameters(), *model.buffers()) if tensor.is_floating_point()]
