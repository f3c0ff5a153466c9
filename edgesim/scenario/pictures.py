"""Data sets made of others: of pictures that have lost something, and of all that the devices of a run hold."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.on_disk import new_file
from edgesim.config import DataConfig, RunConfig
from edgesim.learning.datasets import load_dataset
from edgesim.learning.datasets.dataset import Images
from edgesim.learning.federation import make_federation
from edgesim.streams import Streams

__all__ = ["compress", "gather"]


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
    _write(path, train, data.train_labels, test, data.test_labels)


def gather(config: RunConfig, path: Path) -> None:
    """Write as ``.npz`` what all devices of a run hold at the start of its last frame, with the test set.

    A sample is there as often as devices hold it, so that training on the set minimises the loss that FedAvg over all
    devices minimises, weighted by their samples. Images are [n, H, W, C] with the pixels of the data set; whoever reads
    them standardises them by this set, not by the whole one. Raises `EdgesimError` for a run without pictures, a class
    that no device holds or that is not tested, and a file that cannot be written.
    """
    federation = make_federation(config, Streams(config.seed))
    data, last = federation.dataset, federation.frames[-1]
    if data is None:
        raise EdgesimError("data.dataset: 'none' has no pictures; expected a data set")
    held = np.concatenate([last.samples_of(device) for device in range(config.devices.count)])
    for labels, lacking in ((data.train_labels[held], "no device holds"), (data.test_labels, "no test image is of")):
        missing = np.setdiff1d(np.arange(data.class_count), labels)
        if len(missing):
            raise EdgesimError(
                f"{data.name}: {lacking} class {missing[0]}; expected pictures of all {data.class_count} classes"
            )
    train, test = (images.transpose(0, 2, 3, 1) for images in data.images)
    _write(path, train[held], data.train_labels[held], test, data.test_labels)


def _write(path: Path, images: Images, labels: Integers, test_images: Images, test_labels: Integers) -> None:
    """Write a data set of images [n, H, W, C], completely or not at all; raises `EdgesimError`."""
    with new_file(path) as part, part.open("wb") as file:
        np.savez(file, train_images=images, train_labels=labels, test_images=test_images, test_labels=test_labels)


def _compressed(images: Integers, quality: int, shift: int) -> Integers:
    """Copies, [n, H, W, C], of images [n, C, H, W]."""
    return np.stack([_copy(image, quality, shift) for image in np.roll(images, (-shift, -shift), (2, 3))])


def _copy(image: Integers, quality: int, shift: int) -> Integers:
    jpeg = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0).squeeze()).save(jpeg, "JPEG", quality=quality, subsampling="4:2:0")
    with Image.open(jpeg) as read:
        copy = np.asarray(read).reshape(*image.shape[1:], image.shape[0])
    return np.roll(copy, (shift, shift), (0, 1))
