"""The images and labels of a run; images are read only when something trains or tests."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgesim.config import DataConfig
from edgesim.errors import EdgesimError
from edgesim.selection.view import Floats, Integers
from edgesim.streams import Streams

Images = NDArray[Any]

_DIGITS_TEST_PER_CLASS = 36


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training and a test set of images, channels first."""

    name: str
    train_labels: Integers
    test_labels: Integers
    class_count: int
    image_shape: tuple[int, int, int]
    """Channels, height, width."""
    load_images: Callable[[], tuple[Images, Images]]
    """Reads the training and test images, each [n, C, H, W], uint8 or float."""
    fixed_scale: float | None = None
    """Pixels are divided by this; standardised per channel when absent."""

    @cached_property
    def images(self) -> tuple[Images, Images]:
        """Training and test images, [n, C, H, W], read at first use."""
        return self.load_images()

    @cached_property
    def digest(self) -> str:
        """Content hash of the images and labels (SHA-256)."""
        digest = hashlib.sha256()
        for array in (*self.images, self.train_labels, self.test_labels):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @cached_property
    def normalisation(self) -> tuple[Floats, Floats]:
        """Offset and divisor per channel, each [C]: mean and standard deviation of the training images."""
        channels = self.image_shape[0]
        if self.fixed_scale is not None:
            return np.zeros(channels), np.full(channels, self.fixed_scale)
        moments = [_mean_and_deviation(self.images[0][:, channel]) for channel in range(channels)]
        mean, deviation = np.array(moments).T
        return mean, np.where(deviation > 0, deviation, 1.0)


def load_dataset(config: DataConfig) -> Dataset:
    """The dataset that a config names; raises `EdgesimError` when it is missing or broken."""
    if config.dataset == "digits":
        return _digits()
    if config.dataset in ("cifar10", "cifar100"):
        from edgesim.learning.datasets_cifar import load_cifar

        return load_cifar(config.dataset, Path(config.folder))
    if config.dataset.endswith(".npz"):
        from edgesim.learning.datasets_npz import load_npz

        return load_npz(Path(config.dataset))
    raise EdgesimError(
        f"data.dataset: unknown {config.dataset!r}; expected digits, cifar10, cifar100, a path ending in .npz, or none"
    )


def _digits() -> Dataset:
    """scikit-learn's 1,797 digits of 8x8 pixels; the test split is the same for every run."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    labels = bunch.target.astype(np.int64)
    order = Streams(0).generator("digits-test-split").permutation(len(labels))
    by_class = [order[labels[order] == label][:_DIGITS_TEST_PER_CLASS] for label in range(10)]
    test = np.sort(np.concatenate(by_class))
    train = np.setdiff1d(np.arange(len(labels)), test)
    pixels = bunch.images.astype(np.uint8)[:, None]
    return Dataset(
        name="digits",
        train_labels=labels[train],
        test_labels=labels[test],
        class_count=10,
        image_shape=(1, 8, 8),
        load_images=partial(_split, pixels, train, test),
        fixed_scale=16.0,
    )


def _split(images: Images, train: Integers, test: Integers) -> tuple[Images, Images]:
    return images[train], images[test]


def _mean_and_deviation(pixels: Images) -> tuple[float, float]:
    if pixels.dtype != np.uint8:
        return float(pixels.mean(dtype=np.float64)), float(pixels.std(dtype=np.float64))
    # From the histogram: exact, and no float copy of a large training set.
    counts = np.bincount(pixels.reshape(-1), minlength=256)
    levels = np.arange(256.0)
    mean = float(counts @ levels / counts.sum())
    return mean, float(np.sqrt(counts @ (levels - mean) ** 2 / counts.sum()))
