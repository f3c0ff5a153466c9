"""The images and labels of a run; images are read only when something trains or tests."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgesim.base.arrays import Booleans, Floats, Integers

Images = NDArray[Any]

_IMAGES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Domains:
    """Origin of each image: photographs, sketches, a hospital."""

    names: tuple[str, ...]
    train: Integers
    """Index of each training image's domain, [n]."""
    test: Integers


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training and a test set of images, channels first."""

    name: str
    train_labels: Integers
    test_labels: Integers
    class_count: int
    image_shape: tuple[int, int, int]
    """Channels, height, width of an image as a model sees it."""
    load_images: Callable[[], tuple[Images, Images]]
    """Reads the training and test images, each [n, C, H, W], uint8 or float; of ``image_shape``, or brought to it on
    the training device."""
    fixed_scale: float | None = None
    """Divisor of pixels; standardised per channel when absent."""
    brightest_uint8: float = 255.0
    """The largest value that a pixel can have where pixels are uint8."""
    fixed_offset: float = 0.0
    """Offset that is subtracted from pixels before the division by ``fixed_scale``."""
    domains: Domains | None = None
    """Origins of the images; None where they are unknown."""
    digest_images: Callable[[], str] | None = None
    """Hash of the files of the images, where that is quicker to read than the images."""
    own_images: int | None = None
    """Training images at the head whose mean and deviation standardise all; the whole set's when absent."""

    @cached_property
    def images(self) -> tuple[Images, Images]:
        """Training and test images, [n, C, H, W], read at first use."""
        return self.load_images()

    def in_domains(self, samples: Integers) -> dict[str, Booleans]:
        """Test images of each domain among ``samples``, [n] by name; empty without domains."""
        if self.domains is None:
            return {}
        of_samples = self.domains.test[samples]
        return {self.domains.names[number]: of_samples == number for number in np.unique(of_samples).tolist()}

    @cached_property
    def digest(self) -> str:
        """Hash of the images and labels, their size for the model and how pixels are scaled (SHA-256)."""
        offset = f"offset {self.fixed_offset} " if self.fixed_offset else ""
        digest = hashlib.sha256(f"{offset}scale {self.fixed_scale} shape {self.image_shape} ".encode())
        arrays = [self.train_labels, self.test_labels]
        if self.digest_images is None:
            arrays = [*self.images, *arrays]
        else:
            digest.update(self.digest_images().encode())
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @cached_property
    def normalisation(self) -> tuple[Floats, Floats]:
        """Offset and divisor per channel, each [C]: mean and standard deviation of the training images."""
        channels = self.image_shape[0]
        if self.fixed_scale is not None:
            return np.full(channels, self.fixed_offset), np.full(channels, self.fixed_scale)
        own = self.images[0][: self.own_images]
        moments = [_mean_and_deviation(own[:, channel]) for channel in range(channels)]
        mean, deviation = np.array(moments).T
        return mean, np.where(deviation > 0, deviation, 1.0)


def _mean_and_deviation(pixels: Images) -> tuple[float, float]:
    if pixels.dtype != np.uint8:
        return float(pixels.mean(dtype=np.float64)), float(pixels.std(dtype=np.float64))
    # From the histogram, piece by piece: exact, and no wider copy of a large training set.
    counts = np.zeros(256, dtype=np.int64)
    for first in range(0, len(pixels), _IMAGES_AT_ONCE):
        counts += np.bincount(pixels[first : first + _IMAGES_AT_ONCE].reshape(-1), minlength=256)
    levels = np.arange(256.0)
    mean = float(counts @ levels / counts.sum())
    return mean, float(np.sqrt(counts @ (levels - mean) ** 2 / counts.sum()))
