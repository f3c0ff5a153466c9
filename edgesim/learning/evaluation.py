"""How good a model is: loss, accuracy, macro F1 and per-class accuracy."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import Evaluation
from edgesim.learning.tensors import DeviceData
from edgesim.selection.view import Floats, Integers

#: Few enough that activations of small images stay in a CPU's cache.
_BATCH = {"cpu": 64, "cuda": 1024}


def predictions(model: FlatModel, data: DeviceData, samples: Integers, test: bool) -> tuple[Floats, Integers]:
    """Loss [n] and predicted class [n] of each training or test sample, with the weights that are loaded."""
    model.module.eval()
    losses: list[Tensor] = [torch.empty(0)]
    classes: list[Tensor] = [torch.empty(0, dtype=torch.int64)]
    read = data.test if test else data.train
    with torch.inference_mode():
        for index in torch.split(data.index(samples), _BATCH[data.device.type]):
            images, labels = read(index)
            logits = model.module(model.inputs(images))
            losses.append(F.cross_entropy(logits, labels, reduction="none").cpu())
            classes.append(logits.argmax(1).cpu())
    return torch.cat(losses).double().numpy(), torch.cat(classes).numpy()


def evaluate(model: FlatModel, data: DeviceData, samples: Integers, labels: Integers) -> Evaluation:
    """Test the weights that are loaded on test samples [n], whose true labels are given, [n]."""
    losses, predicted = predictions(model, data, samples, test=True)
    hit = predicted == labels
    classes = np.unique(labels)
    class_accuracy = {int(label): float(hit[labels == label].mean()) for label in classes}
    return Evaluation(float(losses.mean()), float(hit.mean()), macro_f1(labels, predicted, classes), class_accuracy)


def macro_f1(labels: Integers, predicted: Integers, classes: Integers) -> float:
    """Mean over classes of 2 TP / (2 TP + FP + FN)."""
    right = labels[labels == predicted]
    scores = [2 * (right == c).sum() / ((labels == c).sum() + (predicted == c).sum()) for c in classes]
    return float(np.mean(scores))
