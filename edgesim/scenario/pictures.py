"""Copies of data sets whose pictures have lost something, for studies of what that costs."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.on_disk import new_file
from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset

__all__ = ["compress"]


def compress(dataset: str, folder: Path, path: Path, quality: int, shift: int = 0) -> None:
    """Write a data set as ``.npz``, every picture as a JPEG copy of it; raises `EdgesimError`.

    ``dataset`` and ``folder`` are as in ``[data]`` of a config; pictures are uint8, grey or in colour, whose chroma has
    half the resolution (4:2:0). With ``shift`` the grid of blocks lies so many pixels to the lower right, so that what
    was compressed before loses something again.
    """
    data = load_dataset(DataConfig(dataset=dataset, folder=str(folder)))
    if data.images[0].dtype != np.uint8:
        raise EdgesimError(f"{dataset}: pictures are {data.images[0].dtype}; expected uint8, which JPEG can hold")
    train, test = (_compressed(images, quality, shift) for images in data.images)
    with new_file(path) as part, part.open("wb") as file:
        np.savez(
            file, train_images=train, train_labels=data.train_labels, test_images=test, test_labels=data.test_labels
        )


def _compressed(images: Integers, quality: int, shift: int) -> Integers:
    """Copies, [n, H, W, C], of images [n, C, H, W]."""
    return np.stack([_copy(image, quality, shift) for image in np.roll(images, (-shift, -shift), (2, 3))])


def _copy(image: Integers, quality: int, shift: int) -> Integers:
    jpeg = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0).squeeze()).save(jpeg, "JPEG", quality=quality, subsampling="4:2:0")
    with Image.open(jpeg) as read:
        copy = np.asarray(read).reshape(*image.shape[1:], image.shape[0])
    return np.roll(copy, (shift, shift), (0, 1))
