"""Parameters of the models known by name, in closed form, from which a timing-only run computes payloads."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from edgesim.base.errors import EdgesimError
from edgesim.config import LearningConfig
from edgesim.learning.federation import Federation

BITS_PER_PARAMETER = 32


def _dense(*widths: int) -> int:
    """Parameters of linear layers between layers of these widths, biases included."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def _mlp(hidden: Sequence[int], image_shape: tuple[int, int, int], class_count: int) -> int:
    return _dense(math.prod(image_shape), *hidden, class_count)


def _cnn(
    kernel: int,
    filters: Sequence[int],
    has_norms: bool,
    pooling: int,
    hidden: Sequence[int],
    image_shape: tuple[int, int, int],
    class_count: int,
) -> int:
    """Parameters of square convolutions, each with a normalisation or none, and of the linear layers behind them.

    ``pooling`` is the factor by which height and width shrink before the linear layers.
    """
    channels, height, width = image_shape
    convolutions = sum(
        (kernel**2 * inputs + 1 + 2 * has_norms) * outputs for inputs, outputs in pairwise((channels, *filters))
    )
    return convolutions + _dense(filters[-1] * (height // pooling) * (width // pooling), *hidden, class_count)


def _deep(rest: int, per_channel: int, per_class: int, image_shape: tuple[int, int, int], class_count: int) -> int:
    """Parameters of nets that average over the whole image before the head: stem and head depend on the data set."""
    return rest + per_channel * image_shape[0] + per_class * class_count


#: Parameters behind the stem and before the head; group and batch normalisation have equally many.
_RESNETS = {10: 4_896_384, 18: 11_167_104, 34: 21_275_264}

PARAMETER_COUNTS: dict[str, Callable[[tuple[int, int, int], int], int]] = {
    "linear": partial(_mlp, ()),
    "mlp": partial(_mlp, (32,)),
    "small-cnn": partial(_cnn, 5, (16, 32), False, 4, ()),
    "fedteddi-cnn": partial(_cnn, 3, (32, 32, 64, 64), True, 4, (120,)),
    "fedstg-cnn": partial(_cnn, 3, (64, 128, 256), True, 8, (512,)),
    "afl-cnn": partial(_cnn, 3, (32, 64), False, 4, (128,)),
    "afl-mlp": partial(_mlp, (128, 64)),
    **{
        f"resnet{depth}-{norm}{suffix}": partial(_deep, rest, kernel * kernel * 64, 513)
        for depth, rest in _RESNETS.items()
        for norm in ("gn", "bn")
        for suffix, kernel in (("", 3), ("-imagenet", 7))
    },
}

#: Those of torchvision's classifiers that devices of an edge network are most often given.
TORCHVISION_COUNTS: dict[str, Callable[[tuple[int, int, int], int], int]] = {
    "torchvision:mobilenet_v2": partial(_deep, 2_223_008, 288, 1281),
    "torchvision:resnet18": partial(_deep, _RESNETS[18], 3136, 513),
    "torchvision:resnet34": partial(_deep, _RESNETS[34], 3136, 513),
    "torchvision:shufflenet_v2_x0_5": partial(_deep, 341_144, 216, 1025),
    "torchvision:shufflenet_v2_x1_0": partial(_deep, 1_252_956, 216, 1025),
    "torchvision:shufflenet_v2_x1_5": partial(_deep, 2_477_976, 216, 1025),
    "torchvision:shufflenet_v2_x2_0": partial(_deep, 5_344_348, 216, 2049),
}


_COUNTS = PARAMETER_COUNTS | TORCHVISION_COUNTS

_TENSORS = {
    "linear": 2, "mlp": 4, "small-cnn": 6, "fedteddi-cnn": 20, "fedstg-cnn": 16, "afl-cnn": 8, "afl-mlp": 6,
    "resnet10": 38, "resnet18": 62, "resnet34": 110,
    "torchvision:mobilenet_v2": 158, "torchvision:resnet18": 62, "torchvision:resnet34": 110,
    "torchvision:shufflenet_v2": 170,
}  # fmt: skip
"""Trainable tensors of models whose names begin so."""


def model_module(model: str) -> str:
    """Name of the module that makes a model of a config, without importing torch.

    ``edgesim.learning.models`` for a name without a dot that `PARAMETER_COUNTS` lacks.
    """
    models = "edgesim.learning.models"
    if model.startswith("torchvision:"):
        return f"{models}.from_torchvision"
    if model in PARAMETER_COUNTS:
        return f"{models}.resnet" if model.startswith("resnet") else f"{models}.plain"
    return model.rpartition(".")[0] or models


@dataclass(frozen=True)
class Network:
    """Numbers of a model's parameters, features and tensors."""

    parameters: int
    """Trainable parameters."""
    features: int
    """Inputs of the last linear layer; 0 where there is none or their number is unknown."""
    tensors: int
    """Trainable tensors; 0 where unknown."""
    tensor_sizes: tuple[int, ...] = ()
    """Numbers of each, in their order; empty where there is no network."""


def is_known(learning: LearningConfig) -> bool:
    """Whether parameters and features of a model are known by its name; all such models have a last linear layer.

    Those of a model with options are not.
    """
    return learning.model in _COUNTS and not learning.model_options


def known_network(learning: LearningConfig, federation: Federation, charged: bool) -> Network:
    """The `Network` of a model by its name, without torch; 0 parameters unless they are ``charged``.

    One class more adds F weights and a bias to the last layer. Raises `EdgesimError` as `parameter_count`.
    """
    parameters = parameter_count(learning, federation) if charged else 0
    if not is_known(learning) or federation.dataset is None:
        return Network(parameters, 0, 0)
    count = _COUNTS[learning.model]
    shape = federation.dataset.image_shape
    tensors = next(number for start, number in _TENSORS.items() if learning.model.startswith(start))
    return Network(parameters, count(shape, 2) - count(shape, 1) - 1, tensors)


def parameter_count(learning: LearningConfig, federation: Federation) -> int:
    """Trainable parameters of a named model for a federation's images.

    Raises `EdgesimError` where only ``round.payload_bits`` can tell what it sends.
    """
    if federation.dataset is None:
        raise EdgesimError(
            "round.payload_bits: a number is needed with data.dataset = 'none'", "round.payload_bits", "data.dataset"
        )
    if not is_known(learning):
        options = f" with options {learning.model_options}" if learning.model_options else ""
        raise EdgesimError(
            f"round.payload_bits: a number is needed, since without training the size of model {learning.model!r}"
            f"{options} is unknown (`edgesim list` prints the models whose size is known)",
            "round.payload_bits",
        )
    dataset = federation.dataset
    return _COUNTS[learning.model](dataset.image_shape, dataset.class_count)
