"""Tests of a model: loss, accuracy, macro F1 and per-class accuracy."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import Evaluation
from edgesim.learning.measures import Metric, Tested, measured
from edgesim.learning.passes import ROWS, ROWS_IN_CACHE, in_cache, side_by_side
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts

Domains = Mapping[str, Booleans]
"""Whether samples [n] are of a domain, by its name, as from `Dataset.in_domains`; empty without domains."""
Work = Callable[[Tensor, Tensor], tuple[Tensor, ...]]
"""Function of images [n, C, H, W] and their labels [n] that gives tensors of n rows."""


def predictions(
    model: FlatModel, data: DeviceData, samples: Integers, test: bool, cores: int = 1
) -> tuple[Floats, Integers]:
    """Loss [n] and predicted class [n] of each training or test sample, with the weights that are loaded.

    The number of cores changes no byte, see `side_by_side`. Raises `EdgesimError` when memory runs out.
    """

    def predict(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        logits = model.module(images)
        return F.cross_entropy(logits, labels, reduction="none"), logits.argmax(1)

    losses, classes = worked_out(predict, model, data, samples, test, cores)
    return losses.double().numpy(), classes.numpy()


def worked_out(
    work: Work, model: FlatModel, data: DeviceData, samples: Integers, test: bool, cores: int = 1
) -> list[Tensor]:
    """Tensors of ``work`` over training or test samples, in evaluation mode, without gradient, on the CPU.

    The number of cores changes no byte, see `side_by_side`. Raises `EdgesimError` when memory runs out.
    """
    model.module.eval()
    read = data.test if test else data.train

    def part(index: Tensor) -> list[Tensor]:
        with torch.inference_mode():
            images, labels = read(index)
            return [tensor.cpu() for tensor in work(model.inputs(images), labels)]

    at_once = ROWS_IN_CACHE if in_cache(model) else ROWS
    elsewhere = "" if data.device.type == "cpu" else ", or set learning.device = 'cpu'"
    remedy = f"choose a smaller learning.model{elsewhere}"
    with memory_lasts(f"testing the model, {at_once} images at once", remedy, "learning.model"):
        parts = side_by_side(model, cores, part, torch.split(data.index(samples), at_once))
    return [torch.cat(tensors) for tensors in zip(*parts, strict=True)]


def evaluation_of(
    losses: Floats,
    predicted: Integers,
    labels: Integers,
    domains: Domains = MappingProxyType({}),
    metrics: Mapping[str, Metric] = MappingProxyType({}),
) -> Evaluation:
    """Measures of a model by its losses and predictions on samples with these labels, [n] each."""
    hit = predicted == labels
    classes = np.unique(labels)
    class_accuracy = dict(zip(classes.tolist(), _shares(labels[hit], labels, classes), strict=True))
    f1 = class_f1(labels, predicted, classes)
    scores = accuracy(hit, domains), float(np.mean([*f1.values()]))
    further, undefined = measured(metrics, Tested(labels, predicted, losses))
    return Evaluation(
        float(losses.mean()),
        *scores,
        class_accuracy,
        domain_accuracy=by_domain(hit, domains),
        metrics=further,
        undefined=undefined,
        class_f1=f1,
    )


def accuracy(hit: Booleans, domains: Domains) -> float:
    """The share of samples [n] that are hit or, where they are of several domains, the mean of it over these."""
    return float(np.mean([*by_domain(hit, domains).values()])) if domains else float(hit.mean())


def by_domain(hit: Booleans, domains: Domains) -> dict[str, float]:
    """The share of each domain's samples that are hit, of [n]; without domains of which there is no sample."""
    return {name: float(hit[own].mean()) for name, own in domains.items() if own.any()}


def class_f1(labels: Integers, predicted: Integers, classes: Integers) -> dict[int, float]:
    """2 TP / (2 TP + FP + FN) of each class, of labels [n] and predicted classes [n]."""
    right = labels[labels == predicted]
    scores = _shares(np.repeat(right, 2), np.concatenate([labels, predicted]), classes)
    return dict(zip(classes.tolist(), scores, strict=True))


def _shares(some: Integers, of: Integers, classes: Integers) -> list[float]:
    """Number of each class in ``some`` over that in ``of``, [classes]."""
    count = 1 + int(classes.max(initial=-1))
    shares = np.bincount(some, minlength=count)[classes] / np.bincount(of, minlength=count)[classes]
    return [float(share) for share in shares]
