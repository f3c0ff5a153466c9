"""Clipping: T11 of AFL's page."""

import numpy as np
import pytest
import torch

from edgesim.config import PrivacyConfig
from edgesim.learning.transforms.clip import Clip
from edgesim.learning.transforms.transform import Updates

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
