"""Sets that scikit-learn carries within itself: small, real, and never downloaded."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.base.sources import locate
from edgesim.config import DataConfig
from edgesim.learning.datasets.dataset import Dataset, Images
from edgesim.learning.datasets.held_out import held_out

_DIGITS_TEST_PER_CLASS = 36


def load_digits(name: str, config: DataConfig) -> Dataset:
    """1,797 handwritten digits of 8x8 pixels; 36 of each class are for testing."""
    images, labels = _digits()
    train, test = held_out(name, labels, lambda _: _DIGITS_TEST_PER_CLASS)
    return replace(_dataset(name, images, labels, train, test), fixed_scale=16.0, brightest_uint8=16.0)


@cache
def _digits() -> tuple[Images, Integers]:
    """Images [n, 1, 8, 8] and labels [n]. Read once per process: reading takes as long as some rounds of a run."""
    # Without scikit-learn's code, which takes as long to load as PyTorch's own.
    (package,) = locate("sklearn").folders
    values = np.loadtxt(Path(package, "datasets/data/digits.csv.gz"), delimiter=",", dtype=np.int64)
    return values[:, :-1].astype(np.uint8).reshape(-1, 1, 8, 8), np.ascontiguousarray(values[:, -1])


def load_table(name: str, config: DataConfig) -> Dataset:
    """``iris``, ``wine`` or ``breast-cancer``: one float32 per feature, a fifth of each class for testing.

    Every feature is a channel of one pixel, [F, 1, 1], so that each is standardised by its own mean and deviation.
    """
    from sklearn import datasets

    load = {"iris": datasets.load_iris, "wine": datasets.load_wine, "breast-cancer": datasets.load_breast_cancer}
    features, target = load[name](return_X_y=True)
    labels = target.astype(np.int64)
    return _dataset(name, features.astype(np.float32)[:, :, None, None], labels, *held_out(name, labels))


def _dataset(name: str, images: Images, labels: Integers, train: Integers, test: Integers) -> Dataset:
    channels, height, width = images.shape[1:]
    return Dataset(
        name=name,
        train_labels=labels[train],
        test_labels=labels[test],
        class_count=int(labels.max()) + 1,
        image_shape=(channels, height, width),
        load_images=lambda: (images[train], images[test]),
    )
