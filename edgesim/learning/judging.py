"""Tests of models that devices keep, and of algorithms that do not predict the class of the greatest logit."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.learning.algorithms.local_half import LocalHalf, has_own
from edgesim.learning.algorithms.records import Outputs
from edgesim.learning.evaluation import Domains, accuracy, evaluation_of, worked_out
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import Evaluation
from edgesim.learning.measures import Metric
from edgesim.learning.tensors import DeviceData

_Key = TypeVar("_Key")


@dataclass(frozen=True, eq=False)
class Judge:
    """Tests models as an algorithm predicts classes, on test samples [n] of these labels [n] and domains."""

    local: LocalHalf
    shared: Mapping[str, Tensor]
    """Tensors that the server sends with its model."""
    model: FlatModel
    data: DeviceData
    samples: Integers
    labels: Integers
    domains: Domains
    metrics: Mapping[str, Metric]

    def test_loaded(self) -> Evaluation:
        """Test the weights that are loaded; ``head`` is the accuracy of the logits, which do not decide the class."""
        evaluation, _, probabilities = self._judged()
        return replace(evaluation, further={"head": self._accuracy(probabilities.argmax(axis=1))})

    def test_models(self, models: Mapping[int, Tensor], merged: Collection[int], class_counts: Integers) -> Evaluation:
        """Test models of devices, [P] by device, on the same samples; all measures are means over the models.

        ``merged`` are devices of the last merge, whose mean softmax is ``ensemble``; ``class_counts`` [N, C] tell on
        whose test samples each model counts in ``own_classes``. Loads the models one after another.
        """
        tests: list[Evaluation] = []
        further: dict[str, list[float]] = {"own_classes": [], "head": []}
        together: Floats = np.zeros((len(self.labels), class_counts.shape[1]))
        for device, weights in sorted(models.items()):
            self.model.load(weights)
            evaluation, predicted, probabilities = self._judged()
            tests.append(evaluation)
            own = np.isin(self.labels, np.flatnonzero(class_counts[device]))
            if own.any():
                further["own_classes"].append(self._accuracy(predicted, own))
            if has_own(self.local, "scores"):
                further["head"].append(self._accuracy(probabilities.argmax(axis=1)))
            if device in merged:
                together += probabilities
        if together.any():
            further["ensemble"] = [self._accuracy(together.argmax(axis=1))]
        undefined = {name: reason for test in tests for name, reason in test.undefined.items()}
        return Evaluation(
            float(np.mean([test.loss for test in tests])),
            float(np.mean([test.accuracy for test in tests])),
            float(np.mean([test.macro_f1 for test in tests])),
            _means([test.class_accuracy for test in tests]),
            {name: float(np.mean(values)) for name, values in further.items() if values},
            _means([test.domain_accuracy for test in tests]),
            metrics=_means([test.metrics for test in tests]),
            undefined=undefined,
            class_f1=_means([test.class_f1 for test in tests]),
            models=len(tests),
        )

    def _accuracy(self, predicted: Integers, among: Booleans | slice = slice(None)) -> float:
        """Accuracy of predicted classes [n] on some of the samples."""
        domains = {name: of_domain[among] for name, of_domain in self.domains.items()}
        return accuracy((predicted == self.labels)[among], domains)

    def _judged(self) -> tuple[Evaluation, Integers, Floats]:
        """Measures of the loaded weights, predicted classes [n] and softmax of the logits [n, C]."""
        local, model = self.local, self.model

        def work(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
            outputs = model.outputs(images) if local.features else Outputs(model.module(images))
            losses = F.cross_entropy(outputs.logits, labels, reduction="none")
            return losses, local.scores(outputs, self.shared).argmax(1), outputs.logits.softmax(1)

        # On one core: features are caught by a hook on the module, which threads would share.
        losses, classes, probabilities = worked_out(work, model, self.data, self.samples, test=True)
        predicted = classes.numpy()
        evaluation = evaluation_of(losses.double().numpy(), predicted, self.labels, self.domains, self.metrics)
        return evaluation, predicted, probabilities.double().numpy()


def _means(values: Sequence[Mapping[_Key, float]]) -> dict[_Key, float]:
    """Mean of the values of each key that all mappings have, in the order of the first."""
    return {key: float(np.mean([row[key] for row in values])) for key in values[0] if all(key in row for row in values)}
