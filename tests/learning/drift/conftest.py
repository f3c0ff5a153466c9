from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgesim.learning.drift import make_law, resolve_data
from edgesim.learning.drift.law import Drift, Setting, When
from edgesim.streams import Streams


@pytest.fixture
def make_drift(make_config, make_dataset) -> Callable[..., Drift]:
    """The drift of a ``[drift]`` section over a set of ``per_class`` samples of each class."""

    def make(labels=10, per_class=50, devices=20, seed=0, size=None, rounds=100, tmax_s=1.0, **drift: Any) -> Drift:
        data = {} if size is None else {"samples_per_device": size}
        sections = {"devices": {"count": devices}, "round": {"tmax_s": tmax_s}, "drift": drift, "data": data}
        config = make_config(seed=seed, rounds=rounds, **sections)
        config = config.model_copy(update={"data": resolve_data(config)})
        dataset = make_dataset(np.arange(labels * per_class) % labels)
        setting = Setting(config, dataset, np.arange(labels * per_class), Streams(seed))
        return make_law(config.drift).make(setting)

    return make


@pytest.fixture
def at() -> Callable[[float], When]:
    """An instant in the round that runs from one whole second to the next, from 1."""
    return lambda t_s: When(int(t_s) + 1, 1, t_s)
