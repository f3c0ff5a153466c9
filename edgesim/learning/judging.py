"""Accuracy where it is not that of the server's model and its greatest logit: models of devices, other predictions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.learning.algorithms.algorithm import Algorithm, Outputs, State, has_own
from edgesim.learning.evaluation import Domains, accuracy, evaluation_of, worked_out
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import Evaluation
from edgesim.learning.measures import Metric
from edgesim.learning.tensors import DeviceData


@dataclass(frozen=True, eq=False)
class Judge:
    """Tests models as an algorithm predicts classes, on test samples [n] of these labels [n] and domains."""

    algorithm: Algorithm
    state: State
    model: FlatModel
    data: DeviceData
    samples: Integers
    labels: Integers
    domains: Domains
    metrics: Mapping[str, Metric]

    def loaded(self) -> Evaluation:
        """Test the weights that are loaded; ``head`` is the accuracy of the logits, which do not decide the class."""
        evaluation, _, probabilities = self._judged()
        return replace(evaluation, further={"head": self._accuracy(probabilities.argmax(axis=1))})

    def each(self, models: Mapping[int, Tensor], merged: Collection[int], class_counts: Integers) -> Evaluation:
        """Test models of devices, [P] by device, on the same samples; all measures are means over the models.

        ``merged`` are devices of the last merge, whose mean softmax is ``ensemble``; ``class_counts`` [N, C] tell on
        whose test samples each model counts in ``own_classes``. Loads the models one after another.
        """
        found: list[Evaluation] = []
        further: dict[str, list[float]] = {"own_classes": [], "head": []}
        together: Floats = np.zeros((len(self.labels), class_counts.shape[1]))
        for device, weights in sorted(models.items()):
            self.model.load(weights)
            evaluation, predicted, probabilities = self._judged()
            found.append(evaluation)
            own = np.isin(self.labels, np.flatnonzero(class_counts[device]))
            if own.any():
                further["own_classes"].append(self._accuracy(predicted, own))
            if has_own(self.algorithm, "scores"):
                further["head"].append(self._accuracy(probabilities.argmax(axis=1)))
            if device in merged:
                together += probabilities
        if together.any():
            further["ensemble"] = [self._accuracy(together.argmax(axis=1))]
        undefined = {name: why for one in found for name, why in one.undefined.items()}
        return Evaluation(
            float(np.mean([one.loss for one in found])),
            float(np.mean([one.accuracy for one in found])),
            float(np.mean([one.macro_f1 for one in found])),
            {label: float(np.mean([one.class_accuracy[label] for one in found])) for label in found[0].class_accuracy},
            {name: float(np.mean(values)) for name, values in further.items() if values},
            {name: float(np.mean([one.domain_accuracy[name] for one in found])) for name in found[0].domain_accuracy},
            metrics={
                name: float(np.mean([one.metrics[name] for one in found]))
                for name in self.metrics
                if name not in undefined
            },
            undefined=undefined,
            class_f1={label: float(np.mean([one.class_f1[label] for one in found])) for label in found[0].class_f1},
            models=len(found),
        )

    def _accuracy(self, predicted: Integers, among: Booleans | slice = slice(None)) -> float:
        """Of classes predicted [n], on some of the samples."""
        domains = {name: of_domain[among] for name, of_domain in self.domains.items()}
        return accuracy((predicted == self.labels)[among], domains)

    def _judged(self) -> tuple[Evaluation, Integers, Floats]:
        """The measures of the weights that are loaded, the classes predicted [n] and the softmax of logits [n, C]."""
        algorithm, model = self.algorithm, self.model

        def work(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
            outputs = model.outputs(images) if algorithm.features else Outputs(model.module(images))
            losses = F.cross_entropy(outputs.logits, labels, reduction="none")
            return losses, algorithm.scores(outputs, self.state).argmax(1), outputs.logits.softmax(1)

        # On one core: features are caught by a hook on the module, which threads would share.
        losses, classes, probabilities = worked_out(work, model, self.data, self.samples, test=True)
        predicted = classes.numpy()
        evaluation = evaluation_of(losses.double().numpy(), predicted, self.labels, self.domains, self.metrics)
        return evaluation, predicted, probabilities.double().numpy()
