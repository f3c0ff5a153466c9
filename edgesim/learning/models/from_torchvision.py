"""torchvision's classifiers by name, untrained: head and first layer fit the run's classes and images."""

from collections.abc import Callable
from typing import Any

from torch import nn

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import did_you_mean

PREFIX = "torchvision:"

#: Without these, training returns the logits of auxiliary heads too.
_NO_AUXILIARY = {"aux_logits": False, "init_weights": True}
_OPTIONS: dict[str, dict[str, Any]] = {"googlenet": _NO_AUXILIARY, "inception_v3": _NO_AUXILIARY}


def from_torchvision(name: str) -> Callable[..., nn.Module]:
    """Builder of a classifier by torchvision's own name, such as ``shufflenet_v2_x1_0``.

    The builder hands further keywords on, such as ``dropout``. Raises `EdgesimError` for an unknown name; the builder
    raises ValueError where the first layer cannot be adapted.
    """
    from torchvision import models

    known = models.list_models(module=models)
    if name not in known:
        hint = did_you_mean(f"{PREFIX}{name}", [f"{PREFIX}{own}" for own in known], 0.75)
        hint = hint or f"; known: {', '.join(known)}"
        raise EdgesimError(f"learning.model: torchvision has no classifier {name!r}{hint}", "learning.model")

    def build(image_shape: tuple[int, int, int], class_count: int, **options: Any) -> nn.Module:
        more = _OPTIONS.get(name, {}) | options
        model: nn.Module = models.get_model(name, weights=None, num_classes=class_count, **more)
        _take_channels(model, image_shape[0])
        return model

    return build


def _take_channels(model: nn.Module, channels: int) -> None:
    """Replace the first convolution by one of the same geometry that takes images of so many channels."""
    path, old = next((path, part) for path, part in model.named_modules() if isinstance(part, nn.Conv2d))
    if old.in_channels == channels:
        return
    if old.groups != 1:
        raise ValueError(f"its first layer takes {old.in_channels} channels and cannot be adapted to {channels}")
    new = nn.Conv2d(
        channels,
        old.out_channels,
        old.kernel_size,  # type: ignore[arg-type]
        old.stride,  # type: ignore[arg-type]
        old.padding,  # type: ignore[arg-type]
        old.dilation,  # type: ignore[arg-type]
        bias=old.bias is not None,
    )
    owner, _, attribute = path.rpartition(".")
    setattr(model.get_submodule(owner), attribute, new)
