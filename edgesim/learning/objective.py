"""The losses of algorithms that have one of their own; cross-entropy alone is written into the training loops."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from edgesim.algorithms.algorithm import Algorithm, Outputs, Step
from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.learning.flat import FlatModel


class Objective:
    """An algorithm's own loss in the steps of one job."""

    def __init__(self, algorithm: Algorithm, model: FlatModel, given: Mapping[str, Tensor]) -> None:
        self._algorithm = algorithm
        self._model = model
        self._teachers = {
            name: dict(zip(model.names, model.split(given[name]), strict=True)) for name in algorithm.teachers
        }
        self._given = {name: given[name] for name in beside_models(algorithm, given)}

    def __call__(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [n, classes] and the mean loss of a step on images [n, C, H, W]; leaves the model in training mode."""
        if self._teachers:
            self._model.module.eval()
            with torch.no_grad():
                teachers = {name: self._outputs(images, tensors) for name, tensors in self._teachers.items()}
            self._model.module.train()
        else:
            teachers = {}
        own = self._outputs(images)
        share = own.logits.new_full((len(labels),), 1 / len(labels))
        return own.logits, self._algorithm.loss(Step(own, teachers, labels, share, self._given)).mean()

    def _outputs(self, images: Tensor, tensors: Mapping[str, Tensor] | None = None) -> Outputs:
        model = self._model
        with model.autocast():
            if self._algorithm.features:
                outputs = model.outputs(images, tensors)
            else:
                outputs = Outputs(model.module(images) if tensors is None else model.call(tensors, images))
        return in_type(outputs, model.dtype)


def has_own_loss(algorithm: Algorithm) -> bool:
    """Whether an algorithm trains on another loss than cross-entropy."""
    return getattr(algorithm.loss, "__func__", None) is not Algorithm.loss


def beside_models(algorithm: Algorithm, given: Mapping[str, Tensor]) -> list[str]:
    """Names of what a loss gets as `Step.given`."""
    return sorted(given.keys() - {"start", *algorithm.teachers})


def in_type(outputs: Outputs, dtype: torch.dtype) -> Outputs:
    """Outputs of mixed precision in that of losses."""
    features = outputs.features
    return replace(outputs, logits=outputs.logits.to(dtype), features=None if features is None else features.to(dtype))


def refuse_without_features(model: FlatModel, algorithm: Algorithm, config: RunConfig, shape: tuple[int, ...]) -> None:
    """Raise `EdgesimError` where an algorithm looks at features that a model does not make of images of a shape."""
    if not algorithm.features:
        return
    features = None
    if model.head is not None:
        model.module.eval()
        with torch.no_grad():
            features = model.outputs(model.inputs(torch.zeros(2, *shape, device=model.device))).features
    if features is None or len(features) != 2:
        raise EdgesimError(
            f"algorithm.name: {config.algorithm.name!r} compares features, the input of a model's last nn.Linear, and "
            f"learning.model = {config.learning.model!r} has no nn.Linear that trains and gets one row per image; "
            "choose another model or another algorithm",
            "algorithm.name",
            "learning.model",
        )
