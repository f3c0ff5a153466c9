"""Parameters of the models known by name, in closed form: what a timing-only run charges the radio for."""

from collections.abc import Callable
from functools import partial

from edgesim.errors import EdgesimError
from edgesim.learning.federation import Federation

BITS_PER_PARAMETER = 32


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def _norm(channels: int) -> int:
    return 2 * channels


def _mlp(image_shape: tuple[int, int, int], class_count: int) -> int:
    channels, height, width = image_shape
    return _linear(channels * height * width, 32) + _linear(32, class_count)


def _fedteddi_cnn(image_shape: tuple[int, int, int], class_count: int) -> int:
    channels, height, width = image_shape
    convolutions = sum(
        _linear(9 * inputs, outputs) + _norm(outputs)
        for inputs, outputs in ((channels, 32), (32, 32), (32, 64), (64, 64))
    )
    return convolutions + _linear(64 * (height // 4) * (width // 4), 120) + _linear(120, class_count)


def _small_cnn(image_shape: tuple[int, int, int], class_count: int) -> int:
    channels, height, width = image_shape
    head = _linear(32 * (height // 4) * (width // 4), class_count)
    return _linear(25 * channels, 16) + _linear(25 * 16, 32) + head


def _convolution(kernel: int, inputs: int, outputs: int) -> int:
    """Weights of a convolution without bias, and of the normalisation behind it."""
    return kernel * kernel * inputs * outputs + _norm(outputs)


_BLOCKS = {10: (1, 1, 1, 1), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}


def _resnet(depth: int, stem: int, image_shape: tuple[int, int, int], class_count: int) -> int:
    """Basic blocks behind a stem of the given kernel; group and batch normalisation have equally many."""
    total = _convolution(stem, image_shape[0], 64)
    inputs = 64
    for blocks, outputs in zip(_BLOCKS[depth], (64, 128, 256, 512), strict=True):
        total += _convolution(3, inputs, outputs) + (2 * blocks - 1) * _convolution(3, outputs, outputs)
        if inputs != outputs:
            total += _convolution(1, inputs, outputs)
        inputs = outputs
    return total + _linear(512, class_count)


_SHUFFLENETS = {
    "x0_5": (48, 96, 192, 1024),
    "x1_0": (116, 232, 464, 1024),
    "x1_5": (176, 352, 704, 1024),
    "x2_0": (244, 488, 976, 2048),
}


def _shufflenet_v2(width: str, image_shape: tuple[int, int, int], class_count: int) -> int:
    """Ma et al., ECCV 2018, table 5: three stages of 4, 8 and 4 blocks, each split into two branches."""
    *stages, last = _SHUFFLENETS[width]
    inputs = 24
    total = _convolution(3, image_shape[0], inputs)
    for blocks, outputs in zip((4, 8, 4), stages, strict=True):
        half = outputs // 2
        depthwise = 9 * half + _norm(half)
        total += 9 * inputs + _norm(inputs) + 2 * _convolution(1, inputs, half)
        total += depthwise + _convolution(1, half, half)
        total += (blocks - 1) * (depthwise + 2 * _convolution(1, half, half))
        inputs = outputs
    return total + _convolution(1, inputs, last) + _linear(last, class_count)


#: Expansion, channels and repeats of the bottlenecks (Sandler et al., CVPR 2018, table 2).
_BOTTLENECKS = ((1, 16, 1), (6, 24, 2), (6, 32, 3), (6, 64, 4), (6, 96, 3), (6, 160, 3), (6, 320, 1))


def _mobilenet_v2(image_shape: tuple[int, int, int], class_count: int) -> int:
    inputs = 32
    total = _convolution(3, image_shape[0], inputs)
    for expansion, outputs, repeats in _BOTTLENECKS:
        for _ in range(repeats):
            hidden = expansion * inputs
            total += _convolution(1, inputs, hidden) if expansion > 1 else 0
            total += 9 * hidden + _norm(hidden) + _convolution(1, hidden, outputs)
            inputs = outputs
    return total + _convolution(1, inputs, 1280) + _linear(1280, class_count)


PARAMETER_COUNTS: dict[str, Callable[[tuple[int, int, int], int], int]] = {
    "mlp": _mlp,
    "small-cnn": _small_cnn,
    "fedteddi-cnn": _fedteddi_cnn,
    **{
        f"resnet{depth}-{norm}{suffix}": partial(_resnet, depth, stem)
        for depth in _BLOCKS
        for norm in ("gn", "bn")
        for suffix, stem in (("", 3), ("-imagenet", 7))
    },
}

#: Those of torchvision's classifiers that devices of an edge network are most often given.
TORCHVISION_COUNTS: dict[str, Callable[[tuple[int, int, int], int], int]] = {
    "torchvision:mobilenet_v2": _mobilenet_v2,
    "torchvision:resnet18": partial(_resnet, 18, 7),
    "torchvision:resnet34": partial(_resnet, 34, 7),
    **{f"torchvision:shufflenet_v2_{width}": partial(_shufflenet_v2, width) for width in _SHUFFLENETS},
}


def model_module(model: str) -> str:
    """The module in which a model of a config is made, told without importing torch.

    That of all known models for a name that this table lacks.
    """
    models = "edgesim.learning.models"
    if model.startswith("torchvision:"):
        return f"{models}.from_torchvision"
    if model in PARAMETER_COUNTS:
        return f"{models}.resnet" if model.startswith("resnet") else f"{models}.plain"
    return model.rpartition(".")[0] or models


def parameter_count(model: str, federation: Federation) -> int:
    """Trainable parameters of a named model for a federation's images.

    Raises `EdgesimError` where only ``round.payload_bits`` can tell what it sends.
    """
    if federation.dataset is None:
        raise EdgesimError(
            "round.payload_bits: a number is needed with data.dataset = 'none'", "round.payload_bits", "data.dataset"
        )
    counts = PARAMETER_COUNTS | TORCHVISION_COUNTS
    if model not in counts:
        raise EdgesimError(
            f"round.payload_bits: a number is needed, since without training the size of model {model!r} "
            "is unknown (`edgesim list` prints the models whose size is known)",
            "round.payload_bits",
        )
    dataset = federation.dataset
    return counts[model](dataset.image_shape, dataset.class_count)
