"""Accuracy where it is not that of the server's model and its greatest logit: models of devices, other predictions."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from edgesim.algorithms.algorithm import Algorithm, Outputs, State
from edgesim.arrays import Floats, Integers
from edgesim.learning.evaluation import Domains, accuracy, evaluation_of, worked_out
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import Evaluation
from edgesim.learning.tensors import DeviceData


def has_own_scores(algorithm: Algorithm) -> bool:
    """Whether an algorithm predicts other classes than those of the greatest logits."""
    return getattr(algorithm.scores, "__func__", None) is not Algorithm.scores


def judge_loaded(
    algorithm: Algorithm,
    state: State,
    model: FlatModel,
    data: DeviceData,
    samples: Integers,
    labels: Integers,
    domains: Domains,
) -> Evaluation:
    """Test the weights that are loaded by the algorithm's own scores, with the accuracy of its logits as ``head``."""
    evaluation, _, probabilities = _judged(algorithm, state, model, data, samples, labels, domains)
    return replace(evaluation, further={"head": accuracy(probabilities.argmax(axis=1) == labels, domains)})


def judge_each(
    models: Mapping[int, Tensor],
    merged: Collection[int],
    class_counts: Integers,
    algorithm: Algorithm,
    state: State,
    model: FlatModel,
    data: DeviceData,
    samples: Integers,
    labels: Integers,
    domains: Domains,
) -> Evaluation:
    """Test models of devices, [P] by device, on the same test samples; all measures are means over the models.

    ``merged`` are devices of the last merge, whose mean softmax is ``ensemble``; ``class_counts`` [N, C] tell on whose
    test samples each model counts in ``own_classes``. Loads the models one after another.
    """
    found: list[Evaluation] = []
    further: dict[str, list[float]] = {"own_classes": [], "head": []}
    together: Floats = np.zeros((len(labels), class_counts.shape[1]))
    for device, weights in sorted(models.items()):
        model.load(weights)
        evaluation, predicted, probabilities = _judged(algorithm, state, model, data, samples, labels, domains)
        found.append(evaluation)
        own = np.isin(labels, np.flatnonzero(class_counts[device]))
        if own.any():
            own_domains = {name: of_domain[own] for name, of_domain in domains.items()}
            further["own_classes"].append(accuracy((predicted == labels)[own], own_domains))
        if has_own_scores(algorithm):
            further["head"].append(accuracy(probabilities.argmax(axis=1) == labels, domains))
        if device in merged:
            together += probabilities
    if together.any():
        further["ensemble"] = [accuracy(together.argmax(axis=1) == labels, domains)]
    return Evaluation(
        float(np.mean([one.loss for one in found])),
        float(np.mean([one.accuracy for one in found])),
        float(np.mean([one.macro_f1 for one in found])),
        {label: float(np.mean([one.class_accuracy[label] for one in found])) for label in found[0].class_accuracy},
        {name: float(np.mean(values)) for name, values in further.items() if values},
        {name: float(np.mean([one.domain_accuracy[name] for one in found])) for name in found[0].domain_accuracy},
    )


def _judged(
    algorithm: Algorithm,
    state: State,
    model: FlatModel,
    data: DeviceData,
    samples: Integers,
    labels: Integers,
    domains: Domains,
) -> tuple[Evaluation, Integers, Floats]:
    """The measures of the weights that are loaded, the classes predicted [n] and the softmax of logits [n, C]."""

    def work(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        outputs = model.outputs(images) if algorithm.features else Outputs(model.module(images))
        losses = F.cross_entropy(outputs.logits, labels, reduction="none")
        return losses, algorithm.scores(outputs, state).argmax(1), outputs.logits.softmax(1)

    # On one core: features are caught by a hook on the module, which threads would share.
    losses, classes, probabilities = worked_out(work, model, data, samples, test=True)
    predicted = classes.numpy()
    evaluation = evaluation_of(losses.double().numpy(), predicted, labels, domains)
    return evaluation, predicted, probabilities.double().numpy()
