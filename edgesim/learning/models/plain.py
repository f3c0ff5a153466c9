"""Networks of a few layers."""

import math
from itertools import pairwise

from torch import nn

_GROUPS = 8


def _dense(*widths: int) -> list[nn.Module]:
    """Linear layers between layers of these widths, with a ReLU between successive ones."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.ReLU(), nn.Linear(inputs, outputs)]
    return layers[1:]


def linear(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """Logistic regression: one layer from pixels to classes, 650 parameters on digits, 7,850 on Fashion-MNIST."""
    return nn.Sequential(nn.Flatten(), *_dense(math.prod(image_shape), class_count))


def mlp(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """A hidden layer of 32 ReLU units: 64-32-10 on digits."""
    return nn.Sequential(nn.Flatten(), *_dense(math.prod(image_shape), 32, class_count))


def small_cnn(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """Two convolutions of 5x5, 16 and 32 channels, each pooled, and a linear layer.

    28,938 parameters for 10 classes of grey images of 28x28 pixels. Pooling comes before the ReLU, which changes
    nothing but the cost: the two commute.
    """
    channels, height, width = image_shape
    return nn.Sequential(
        nn.Conv2d(channels, 16, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * (height // 4) * (width // 4), class_count),
    )


def afl_mlp(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """AFL's for tables: hidden layers of 128 and 64 ReLU units; 12,354 parameters on breast cancer."""
    return nn.Sequential(nn.Flatten(), *_dense(math.prod(image_shape), 128, 64, class_count))


def afl_cnn(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """AFL's for images: two convolutions of 3x3, 32 and 64 channels, each pooled, and a hidden layer of 128 units.

    545,098 parameters on CIFAR-10, 421,642 on Fashion-MNIST.
    """
    channels, height, width = image_shape
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *_dense(64 * (height // 4) * (width // 4), 128, class_count),
    )


def fedstg_cnn(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """FedStg's: three convolutions of 3x3, 64 to 256 channels, each with batch norm and pooled, and 512 hidden units.

    2,474,506 parameters on CIFAR-10, 2,520,676 on CIFAR-100.
    """
    channels, height, width = image_shape

    def convolution(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(
        *convolution(channels, 64),
        *convolution(64, 128),
        *convolution(128, 256),
        nn.Flatten(),
        nn.Linear(256 * (height // 8) * (width // 8), 512),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(512, class_count),
    )


def fedteddi_cnn(image_shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """FedTeddi's CNN for CIFAR-10 (section V-A): 558,802 parameters with padding 1 and groups of 8."""
    channels, height, width = image_shape

    def convolution(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(_GROUPS, outputs), nn.ReLU()]

    return nn.Sequential(
        *convolution(channels, 32),
        *convolution(32, 32),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        *convolution(32, 64),
        *convolution(64, 64),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        *_dense(64 * (height // 4) * (width // 4), 120, class_count),
    )
