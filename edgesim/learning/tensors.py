"""The dataset on the training device: moved there once, normalised and brought to size per batch."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from edgesim.base.arrays import Numbers
from edgesim.learning import augmentation
from edgesim.learning.datasets import Dataset


class DeviceData:
    """Images as stored (uint8 or float) and labels on one device."""

    def __init__(self, dataset: Dataset, device: torch.device, dtype: torch.dtype = torch.float32) -> None:
        self.device = device
        self.dtype = dtype
        """Type of images as the model sees them."""
        self.image_shape = dataset.image_shape
        """Channels, height and width of an image as the model sees it."""
        self.train_images, self.test_images = (torch.from_numpy(images).to(device) for images in dataset.images)
        self.train_labels = torch.from_numpy(dataset.train_labels).to(device)
        self.test_labels = torch.from_numpy(dataset.test_labels).to(device)
        offset, divisor = (
            torch.from_numpy(values).to(device, dtype)[:, None, None] for values in dataset.normalisation
        )
        self._offset, self._divisor = offset, divisor
        top = dataset.brightest_uint8 if self.train_images.dtype == torch.uint8 else dataset.fixed_scale
        self.brightest: float | None = top if min(self.image_shape[1:]) > 1 else None
        """The largest value that a pixel can have; None where that is unknown, and of tables."""

    def arrays(self) -> dict[str, Any]:
        """All attributes on the CPU, tensors as arrays, for `of_arrays` in another process."""
        return {name: of.cpu().numpy() if isinstance(of, Tensor) else of for name, of in vars(self).items()}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any], device: torch.device) -> "DeviceData":
        """Data from the result of `arrays`, on a device; on the CPU the tensors share the arrays' memory."""
        data = cls.__new__(cls)
        for name, of in arrays.items():
            setattr(data, name, torch.from_numpy(of).to(device) if isinstance(of, np.ndarray) else of)
        data.device = device
        return data

    @property
    def nbytes(self) -> int:
        """Bytes of images and labels."""
        tensors = (self.train_images, self.test_images, self.train_labels, self.test_labels)
        return sum(tensor.nbytes for tensor in tensors)

    @cached_property
    def white(self) -> float:
        """The largest value of a pixel among the training images as they are stored."""
        return float(self.train_images.max())

    @property
    def stored_size(self) -> tuple[int, int]:
        """Height and width of the training images as they are stored, and augmented."""
        height, width = self.train_images.shape[2:]
        return height, width

    def index(self, samples: Numbers) -> Tensor:
        """Sample indices, or how their images are changed, on the device."""
        return torch.from_numpy(np.ascontiguousarray(samples)).to(self.device)

    def train(self, samples: Tensor, changes: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Normalised training images [n, C, H, W] and labels [n] of sample indices, augmented by `changes` [n, k]."""
        # Six times as fast on a CPU as an index in brackets.
        images = self.train_images.index_select(0, samples)
        if changes is not None:
            images = augmentation.apply(images, changes, self.white)
        return self._normalised(images), self.train_labels.index_select(0, samples)

    def test(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        """Normalised test images [n, C, H, W] and labels [n] of sample indices."""
        return self._normalised(self.test_images.index_select(0, samples)), self.test_labels.index_select(0, samples)

    def of_brightness(self, images: Tensor) -> Tensor:
        """Normalised images of ones of brightness 0 to 1, [n, C, H, W] of the model's size, with gradient."""
        assert self.brightest is not None
        return (images * self.brightest - self._offset) / self._divisor

    def _normalised(self, images: Tensor) -> Tensor:
        images = images.to(self.dtype).sub_(self._offset).div_(self._divisor)
        size = self.image_shape[1:]
        if images.shape[2:] == size:
            return images
        return functional.interpolate(images, size, mode="bilinear", antialias=True)
