"""How good a model is: loss, accuracy, macro F1 and per-class accuracy."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.arrays import Floats, Integers
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import Evaluation
from edgesim.learning.passes import ROWS, ROWS_IN_CACHE, in_cache, side_by_side
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts


def predictions(
    model: FlatModel, data: DeviceData, samples: Integers, test: bool, cores: int = 1
) -> tuple[Floats, Integers]:
    """Loss [n] and predicted class [n] of each training or test sample, with the weights that are loaded.

    The number of cores changes no byte, see `side_by_side`. Raises `EdgesimError` when memory runs out.
    """
    model.module.eval()
    read = data.test if test else data.train

    def predict(index: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            images, labels = read(index)
            logits = model.module(model.inputs(images))
            return F.cross_entropy(logits, labels, reduction="none").cpu(), logits.argmax(1).cpu()

    at_once = ROWS_IN_CACHE if in_cache(model) else ROWS
    elsewhere = "" if data.device.type == "cpu" else ", or set learning.device = 'cpu'"
    remedy = f"choose a smaller learning.model{elsewhere}"
    with memory_lasts(f"testing the model, {at_once} images at once", remedy, "learning.model"):
        found = side_by_side(model, cores, predict, torch.split(data.index(samples), at_once))
    losses, classes = zip(*found, strict=True)
    return torch.cat(losses).double().numpy(), torch.cat(classes).numpy()


def evaluate(model: FlatModel, data: DeviceData, samples: Integers, labels: Integers, cores: int = 1) -> Evaluation:
    """Test the weights that are loaded on test samples [n], whose true labels are given, [n]."""
    losses, predicted = predictions(model, data, samples, True, cores)
    hit = predicted == labels
    classes = np.unique(labels)
    class_accuracy = {int(label): float(hit[labels == label].mean()) for label in classes}
    return Evaluation(float(losses.mean()), float(hit.mean()), macro_f1(labels, predicted, classes), class_accuracy)


def macro_f1(labels: Integers, predicted: Integers, classes: Integers) -> float:
    """Mean over classes of 2 TP / (2 TP + FP + FN)."""
    right = labels[labels == predicted]
    scores = [2 * (right == c).sum() / ((labels == c).sum() + (predicted == c).sum()) for c in classes]
    return float(np.mean(scores))
