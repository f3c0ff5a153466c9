"""Parameters of the models known by name, in closed form: what a timing-only run charges the radio for."""

from collections.abc import Callable

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


def _resnet18_gn(image_shape: tuple[int, int, int], class_count: int) -> int:
    total = 9 * image_shape[0] * 64 + _norm(64)
    inputs = 64
    for outputs in (64, 128, 256, 512):
        total += 9 * inputs * outputs + 3 * 9 * outputs * outputs + 4 * _norm(outputs)
        if inputs != outputs:
            total += inputs * outputs + _norm(outputs)
        inputs = outputs
    return total + _linear(512, class_count)


PARAMETER_COUNTS: dict[str, Callable[[tuple[int, int, int], int], int]] = {
    "mlp": _mlp,
    "fedteddi-cnn": _fedteddi_cnn,
    "resnet18-gn": _resnet18_gn,
}


def model_bits(model: str, federation: Federation) -> float:
    """Bits of a named model for a federation's images; raises `EdgesimError` where only a number can tell."""
    if federation.dataset is None:
        raise EdgesimError("round.payload_bits: a number is needed with data.dataset = 'none'")
    if model not in PARAMETER_COUNTS:
        known = ", ".join(PARAMETER_COUNTS)
        raise EdgesimError(
            f"round.payload_bits: a number is needed, since without training the size of model {model!r} "
            f"is unknown (known: {known})"
        )
    dataset = federation.dataset
    return float(BITS_PER_PARAMETER * PARAMETER_COUNTS[model](dataset.image_shape, dataset.class_count))
