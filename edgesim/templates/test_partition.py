"""Tests of the partition."""

import numpy as np

from edgesim.streams import Streams
from edgesim.templates.partition import Halves


def test_each_device_holds_its_half_of_the_classes_and_no_sample_twice() -> None:
    """Ten classes: classes 0 to 4 at even devices, 5 to 9 at odd ones."""
    labels = np.arange(500) % 10
    (parts,) = Halves().divide(labels, 10, 4, 60, Streams(0))
    for device, part in enumerate(parts):
        assert len(part) == len(np.unique(part)) == 60
        assert set(labels[part] // 5) == {device % 2}


def test_a_share_of_the_samples_comes_from_all_classes() -> None:
    """With everything mixed both halves hold all classes."""
    labels = np.arange(500) % 10
    (parts,) = Halves(mixed=1.0).divide(labels, 10, 2, 200, Streams(0))
    assert all(len(np.unique(labels[part])) == 10 for part in parts)
