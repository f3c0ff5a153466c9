"""Steps of gradient descent that lose something on their way, for scenarios on functions without devices."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.feedback import send_with_residual
from edgesim.learning.codecs.transmission import receive

__all__ = ["WAYS", "descend"]

Way = Callable[[Tensor, float, Tensor | None], tuple[Tensor, Tensor | None]]
"""From the gradient times the rate [d], the rate, and what is remembered: what is subtracted [d], and what is
remembered from then on."""


def _whole(step: Tensor, rate: float, memory: Tensor | None) -> tuple[Tensor, None]:
    return step, None


def _signs(step: Tensor, rate: float, memory: Tensor | None) -> tuple[Tensor, None]:
    # Adding 0 makes 0 of -0, whose sign bit would count.
    return torch.ones_like(step).copysign_(step + 0.0) * rate, None


def _with_residual(step: Tensor, rate: float, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
    codec = make_codec("sign", {})
    sent = send_with_residual(step, memory, lambda vector: receive(codec, vector, None, 0))
    return sent.update.double(), sent.memory


WAYS: Mapping[str, Way] = {"sgd": _whole, "signsgd": _signs, "feedback": _with_residual}
"""SGD; signSGD, which moves each coordinate by the rate; and edgesim's codec ``sign`` with its residual."""


def descend(
    way: str,
    start: tuple[float, ...],
    steps: int,
    gradient: Callable[[int, Tensor], tuple[float, ...]],
    rate: Callable[[int], float],
) -> Tensor:
    """Points behind each of so many ``steps`` from a start, [steps, d], by one of `WAYS`.

    ``gradient`` and ``rate`` get the number of the step, from 1, and ``gradient`` the point before it, [d].
    """
    point, memory, points = torch.tensor(start, dtype=torch.float64), None, []
    for number in range(1, steps + 1):
        now = rate(number)
        moved, memory = WAYS[way](now * point.new_tensor(gradient(number, point)), now, memory)
        point = point - moved
        points.append(point)
    return torch.stack(points)
