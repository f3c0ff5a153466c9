"""Clipping: T11 of AFL's page, and its place among what updates pass through."""

import numpy as np
import pytest
import torch

from edgesim.config import PrivacyConfig
from edgesim.learning.transforms import make_transforms
from edgesim.learning.transforms.clip import Clip
from edgesim.learning.transforms.transform import Updates
from edgesim.streams import Streams

ONE = np.ones(1, dtype=np.int64)


@pytest.mark.parametrize(("length", "clipped"), [(5.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_a_long_update_is_scaled_down_and_a_short_one_stays(length, clipped):
    """Buffers stay as they are, and so does the update itself."""
    update = torch.tensor([0.6 * length, 0.8 * length, 7.0], dtype=torch.float64)
    before = update.clone()
    passed = Clip(PrivacyConfig(mechanism="clip", clip=1.0), 2).apply(Updates(ONE, ONE, [update]))
    assert passed.received[0].tolist() == pytest.approx([0.6 * clipped, 0.8 * clipped, 7.0], abs=1e-15)
    assert torch.equal(update, before)
    assert passed.report(np.ones(1)) == {("privacy", "clipped"): float(length > 1)}


def test_of_no_updates_there_is_nothing_to_report():
    none = np.empty(0, dtype=np.int64)
    assert Clip(PrivacyConfig(mechanism="clip", clip=1.0), 2).apply(Updates(none, none, [])).report(np.empty(0)) == {}


@pytest.mark.parametrize(
    ("privacy", "names"),
    [
        ({}, []),
        ({"mechanism": "clip", "clip": 1.0}, ["Clip"]),
        ({"mechanism": "local", "clip": 1.0, "noise": 1.0, "delta": 1e-5}, ["Clip", "Noise"]),
        ({"mechanism": "central", "clip": 1.0, "noise": 1.0, "delta": 1e-5}, ["Clip"]),
    ],
)
def test_updates_are_clipped_before_noise_is_added(make_config, privacy, names):
    config = make_config().model_copy(update={"privacy": PrivacyConfig(**privacy)})
    assert [type(transform).__name__ for transform in make_transforms(config, Streams(0), 5)] == names
