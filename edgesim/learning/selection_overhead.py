"""Computing of devices for a selector, beyond their training (FedDance, section 6.4 and fig. 18).

The simulator itself takes Oort's losses while training, as Oort's published code does. Here it is what FedDance's paper
compares itself to: a forward pass over all local samples.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def of_feddance(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    """Mean loss and accuracy (eqs. 6 and 7) from the logits [n, classes] that training has left, and the labels [n]."""
    return float(F.cross_entropy(logits, labels)), float((logits.argmax(1) == labels).float().mean())


def of_oort(model: nn.Module, images: Tensor, labels: Tensor, batch: int) -> float:
    """Root of the mean square loss of all local samples, images [n, C, H, W] and labels [n], taken in batches.

    The model is evaluated in the mode that it is in (Lai et al., "Oort", OSDI 2021, eq. 2).
    """
    square = 0.0
    with torch.inference_mode():
        for rows, own in zip(torch.split(images, batch), torch.split(labels, batch), strict=True):
            square += float(F.cross_entropy(model(rows), own, reduction="none").double().square().sum())
    return math.sqrt(square / len(labels))
