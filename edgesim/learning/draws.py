"""Random numbers of the steps of a job, for losses that draw: the same whichever back end trains.

Like dropout masks, they are a hash of (job seed, step), of the number of the draw within the step and of the place
within the draw. A tensor's rows count first, so that rows which only fill up a stack change no others.
"""

import math

import torch
from torch import Tensor

from edgesim.learning import dropout
from edgesim.learning.torch_types import Key

_NO_LAYER = 0xFFFFFFFF
"""Number in keys in place of a dropout layer's."""
_PLACES = 1 << 26


def key(seed: int, step: int) -> tuple[int, int]:
    """Key of the draws of a step of a job: two words in [-2^31, 2^31)."""
    return dropout.key(seed, step, _NO_LAYER)


def uniform(key: Key, number: int, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Uniforms in (0, 1) of 23 bits, of a shape; ``number``, from 0, tells a step's draws apart, 32 at most.

    Of type and device of another tensor: both types of floats hold the same numbers.
    """
    count = math.prod(shape)
    counter = torch.arange(number * _PLACES, number * _PLACES + count, dtype=torch.int32, device=like.device)
    words = (dropout.hashed(counter, key) >> 9).bitwise_and_(0x7FFFFF)
    return words.to(like.dtype).add_(0.5).mul_(2.0**-23).view(shape)


def normal(key: Key, number: int, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Standard normal draws, of 5.3 at most; arguments as in `uniform`."""
    return torch.erfinv(2 * uniform(key, number, shape, like) - 1) * math.sqrt(2)
