"""Clipping of updates to a largest norm."""

import numpy as np
from typing_extensions import override

from edgesim.config import PrivacyConfig
from edgesim.learning.norms import norm
from edgesim.learning.transforms.transform import Passed, Transform, Updates


class Clip(Transform):
    """Shortens the trainable part of an update, ``parameters`` numbers, to ``privacy.clip``.

    ``key`` is that of its row ``privacy`` of ``metrics``.
    """

    def __init__(self, config: PrivacyConfig, parameters: int, key: str = "clipped") -> None:
        super().__init__()
        self._key = key
        assert config.clip is not None
        self._most = config.clip
        self._size = parameters

    @override
    def apply(self, updates: Updates) -> Passed:
        """Clip the updates, and report the share of those that were longer."""
        lengths = [norm(update[: self._size]) for update in updates.vectors]
        clipped = [update.clone() for update in updates.vectors]
        for update, length in zip(clipped, lengths, strict=True):
            update[: self._size] *= min(1.0, self._most / length) if length else 1.0
        if not clipped:
            return Passed(clipped)
        share = float(np.mean([length > self._most for length in lengths]))
        return Passed(clipped, lambda alpha: {("privacy", self._key): share})
