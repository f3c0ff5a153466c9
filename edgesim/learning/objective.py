"""Losses of algorithms that have a loss of their own; cross-entropy is part of the training loops."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning import draws
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Outputs, Step
from edgesim.learning.flat import FlatModel


class LocalObjective:
    """An algorithm's own loss in the steps of one job; the job's seed decides the draws of the loss."""

    def __init__(self, local: LocalHalf, model: FlatModel, given: Mapping[str, Tensor], seed: int) -> None:
        self._local = local
        self._seed = seed
        self._model = model
        self._teachers = {name: given[name] for name in local.teachers if name in given}
        self._given = {name: given[name] for name in beside_models(local, given)}

    def taught(self, batches: Sequence[Tensor]) -> list[dict[str, Outputs]]:
        """Outputs of the teachers on the images of several steps, [n, C, H, W] each, by name.

        For many steps at once, as a change of weights and mode takes the time of a step on a small model. The model is
        in training mode afterwards, with the weights that it had.
        """
        model, results = self._model, [dict[str, Outputs]() for _ in batches]
        before = model.snapshot()
        model.module.eval()
        with torch.no_grad():
            for name, weights in self._teachers.items():
                model.weights.copy_(weights)
                for outputs, images in zip(results, batches, strict=True):
                    outputs[name] = self._outputs(images)
        model.weights.copy_(before)
        model.module.train()
        return results

    def __call__(
        self, images: Tensor, labels: Tensor, teachers: Mapping[str, Outputs], number: int, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits [n, classes] and the mean loss of a step on images [n, C, H, W], with the teachers' outputs on them.

        ``number`` is that of the step, from 0; ``rows`` [n] are `Step.rows`.
        """
        own = self._outputs(images)
        share = own.logits.new_full((len(labels),), 1 / len(labels))
        head = self._model.head if self._local.features else None
        key = draws.key(self._seed, number) if self._local.draws else None
        step = Step(own, teachers, labels, share, self._given, head, key, rows)
        return own.logits, self._local.loss(step).mean()

    def _outputs(self, images: Tensor) -> Outputs:
        model = self._model
        with model.autocast():
            outputs = model.outputs(images) if self._local.features else Outputs(model.module(images))
        return outputs.each(lambda tensor: tensor.to(model.dtype))


def beside_models(local: LocalHalf, given: Mapping[str, Tensor]) -> list[str]:
    """Names of the tensors that a loss gets as `Step.given`."""
    return sorted(given.keys() - {"start", *local.teachers})


def refuse_without_features(model: FlatModel, config: RunConfig, shape: tuple[int, ...], key: str, needs: str) -> None:
    """Raise `EdgesimError` for a model without features for images of a shape, which a value of a key ``needs``."""
    features = None
    if model.head is not None:
        model.module.eval()
        with torch.no_grad():
            features = model.outputs(model.inputs(torch.zeros(2, *shape, device=model.device))).last_input
    if features is None or len(features) != 2:
        raise EdgesimError(
            f"{key}: {needs!r} needs features, the input of a model's last nn.Linear, and "
            f"learning.model = {config.learning.model!r} has no nn.Linear that trains and gets one row per image; "
            "choose another model or another algorithm",
            key,
            "learning.model",
        )
