"""Dropout masks as a function of (job seed, step, layer), the same whichever back end trains.

Element i of a mask is kept where a 32-bit hash of i, keyed by 64 bits of (seed, step, layer), reaches p 2^32. The hash
is lowbias32 (Wellons, "Prospecting for hash functions", 2018) with half of the key added between its two
multiplications. It is made of elementwise operations on int32, so it works on any device, under `torch.func.vmap`,
and faster than torch's own draws.
"""

import hashlib
import struct
from collections.abc import Callable

import torch
from torch import Tensor, nn
from typing_extensions import override

from edgesim.learning.torch_types import Key

_FIRST = 0x7FEB352D
_SECOND = 0x846CA68B - (1 << 32)


class Masks:
    """Keys of a model's dropout layers in the current step.

    A layer is identified by the place of its call within the step's forward pass, from 0.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._key: Callable[[int], Key] | None = None

    def begin(self, key: Callable[[int], Key]) -> None:
        """Begin a step; ``key`` gives the key of each call."""
        self.calls = 0
        self._key = key

    def next_key(self) -> Key:
        """The key of the next call."""
        if self._key is None:
            raise RuntimeError("a dropout layer was used in training mode outside of a step")
        self.calls += 1
        return self._key(self.calls - 1)


class MaskedDropout(nn.Module):
    """`torch.nn.Dropout` with masks that the step's key decides."""

    def __init__(self, p: float, masks: Masks) -> None:
        super().__init__()
        self.p = p
        self._masks = masks

    @override
    def forward(self, x: Tensor) -> Tensor:
        """Activations of one client, [n, ...]."""
        if not self.training or self.p == 0:
            return x
        return x * noise(x.shape, self._masks.next_key(), self.p, x)


def install(module: nn.Module) -> Masks:
    """Replace every `nn.Dropout` below a module; other kinds of dropout keep drawing from torch's generator."""
    masks = Masks()
    for parent in module.modules():
        # Not `named_children`, which lists a layer in two places once.
        for name, child in parent._modules.items():
            if type(child) is nn.Dropout:
                setattr(parent, name, MaskedDropout(child.p, masks))
    return masks


def key(seed: int, step: int, layer: int) -> tuple[int, int]:
    """Key of a dropout layer's call in a step of a job: two words in [-2^31, 2^31)."""
    digest = hashlib.blake2b(struct.pack("<QII", seed, step, layer), digest_size=8).digest()
    first, second = struct.unpack("<ii", digest)
    return first, second


def noise(shape: torch.Size, key: Key, p: float, like: Tensor) -> Tensor:
    """1 / (1 - p) where an element of one client's activations is kept, else 0; of a shape, [n, ...].

    Elements count in the order of channels-last memory where there are four dimensions. With keys [S, 1, ...] of
    as many dimensions as the shape, the result gets the clients as its first dimension.
    """
    words = hashed(_counter(shape, like.device), key)
    kept = words >= min(round(p * 2**32) - 2**31, 2**31 - 1)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return kept.to(like.dtype) * scale


def hashed(counter: Tensor, key: Key) -> Tensor:
    """Words in [-2^31, 2^31) of an int32 counter."""
    first, second = key
    x = counter ^ first
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    x *= _FIRST
    x ^= (x >> 15).bitwise_and_(0x1FFFF)
    x += second
    x *= _SECOND
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    return x


def _counter(shape: torch.Size, device: torch.device) -> Tensor:
    counter = torch.arange(shape.numel(), dtype=torch.int32, device=device)
    if len(shape) == 4:
        rows, channels, height, width = shape
        return counter.view(rows, height, width, channels).permute(0, 3, 1, 2)
    return counter.view(shape)
