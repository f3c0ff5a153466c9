"""Gaussian noise on each update (local), or on the weighted mean of updates (central)."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.config import PrivacyConfig
from edgesim.learning.torch_types import Tensor
from edgesim.learning.transforms.transform import Metrics, Passed, Transform, Updates
from edgesim.streams import Streams


def noise_per_coordinate(config: PrivacyConfig, alpha: Floats, ids: Integers) -> float:
    """Standard deviation of the noise on each coordinate of the sum of alpha_n times update n.

    ``alpha`` and the devices ``ids`` are [S]. Central noise is z S times what the updates of one device count at most;
    without rounds a sum may have several of a device.
    """
    if config.noise is None or len(alpha) == 0:
        return 0.0
    assert config.clip is not None
    if config.mechanism == "local":
        return config.noise * config.clip * float(np.sqrt(np.sum(alpha**2)))
    return config.noise * config.clip * float(np.bincount(np.unique(ids, return_inverse=True)[1], alpha).max())


def noise_to_update(
    config: PrivacyConfig, parameters: int, updates: Sequence[Tensor], ids: Integers, alpha: Floats
) -> Metrics:
    """A row of ``metrics``: expected length of the noise on the weighted mean of updates over the length of that mean
    without noise, of the trainable part; none where either is zero.
    """
    noise = noise_per_coordinate(config, alpha, ids) * math.sqrt(parameters)
    if not noise:
        return {}
    mean = sum(share * update[:parameters] for share, update in zip(alpha.tolist(), updates, strict=True))
    length = float(mean.norm())  # type: ignore[union-attr]
    return {("privacy", "noise_to_update"): noise / length} if length else {}


class Noise(Transform):
    """Local noise on the trainable part of each update, ``parameters`` numbers."""

    def __init__(self, config: PrivacyConfig, streams: Streams, parameters: int) -> None:
        super().__init__()
        self._config, self._streams, self._size = config, streams, parameters

    @override
    def apply(self, updates: Updates) -> Passed:
        """Add noise to the updates, and report how long it is beside their mean."""
        assert self._config.noise is not None
        assert self._config.clip is not None
        received = [update.clone() for update in updates.vectors]
        for update, device, task in zip(received, updates.ids.tolist(), updates.tasks.tolist(), strict=True):
            draws = _normal(self._streams, "privacy/local", device, task, update, self._size)
            update[: self._size] += draws * (self._config.noise * self._config.clip)
        return Passed(received, partial(noise_to_update, self._config, self._size, updates.vectors, updates.ids))


def noise_on_mean(
    config: PrivacyConfig, streams: Streams, parameters: int, alpha: Floats, ids: Integers, round: int, like: Tensor
) -> Tensor | None:
    """Central noise on the trainable part of the mean of a round's updates, [trainable]; None for no updates."""
    if len(alpha) == 0:
        return None
    draws = _normal(streams, "privacy/central", 0, round, like, parameters)
    return draws * noise_per_coordinate(config, alpha, ids)


def _normal(streams: Streams, name: str, device: int, number: int, like: Tensor, size: int) -> Tensor:
    import torch

    draws = streams.generator(name, device, number).standard_normal(size)
    return torch.from_numpy(draws).to(like)
