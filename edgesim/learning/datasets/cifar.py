"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), in pickles that are read by `edgesim.base.unpickle`."""

from pathlib import Path
from typing import Any

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.unpickle import read_plain
from edgesim.config import DataConfig
from edgesim.learning.datasets.dataset import Dataset, Images
from edgesim.learning.datasets.published import PublishedDataset, locate

_SHAPE = (3, 32, 32)
_BATCHES = [*(f"data_batch_{part}" for part in range(1, 6)), "test_batch"]


def _published(name: str, folder: str, files: list[str], md5: str) -> PublishedDataset:
    archive = f"{name.replace('cifar', 'cifar-')}-python.tar.gz"
    return PublishedDataset(name, folder, files, ["https://www.cs.toronto.edu/~kriz/"], {archive: md5}, folder)


_SETS = {
    "cifar10": _published("cifar10", "cifar-10-batches-py", _BATCHES, "c58f30108f718f92721af3b95e74349a"),
    "cifar100": _published("cifar100", "cifar-100-python", ["train", "test"], "eb9058c3a382ffc7106e4002c42a8d85"),
}
_LABELS = {"cifar10": "labels", "cifar100": "fine_labels"}
_CLASSES = {"cifar10": 10, "cifar100": 100}


def cifar_files(name: str, config: DataConfig) -> list[Path]:
    """The batches for training, then that for testing; raises `EdgesimError`."""
    return locate(_SETS[name], config)


def load_cifar(name: str, config: DataConfig) -> Dataset:
    """Dataset ``cifar10`` or ``cifar100`` (fine labels); raises `EdgesimError` that names the file."""
    *train, test = cifar_files(name, config)
    return Dataset(
        name=name,
        train_labels=_labels(name, train),
        test_labels=_labels(name, [test]),
        class_count=_CLASSES[name],
        image_shape=_SHAPE,
        load_images=lambda: (_images(train), _images([test])),
    )


def _labels(name: str, paths: list[Path]) -> Integers:
    parts = []
    for path in paths:
        batch = _batch(path)
        labels = _entry(path, batch, _LABELS[name])
        # A list of lists that are one another many times over would be an array of any size.
        if isinstance(labels, list) and {int}.issuperset(map(type, labels)) and max(labels, default=0) < 2**31:
            labels = np.array(labels)
        labels = labels if isinstance(labels, np.ndarray) else np.empty(0)
        in_range = labels.ndim == 1 and labels.dtype.kind in "iu" and labels.size > 0
        if not in_range or labels.min() < 0 or labels.max() >= _CLASSES[name]:
            raise EdgesimError(f"{path}: {_LABELS[name]} are not integers from 0 to {_CLASSES[name] - 1}")
        images = len(_pixels(path, batch))
        if len(labels) != images:
            raise EdgesimError(f"{path}: {len(labels)} labels for {images} images")
        parts.append(labels.astype(np.int64))
    return np.concatenate(parts)


def _images(paths: list[Path]) -> Images:
    return np.concatenate([_pixels(path, _batch(path)) for path in paths]).reshape(-1, *_SHAPE)


def _pixels(path: Path, batch: dict[Any, Any]) -> Images:
    pixels = _entry(path, batch, "data")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3072,):
        raise EdgesimError(f"{path}: data is not a uint8 array of n x 3072 pixels")
    return pixels


def _batch(path: Path) -> dict[Any, Any]:
    batch = read_plain(path, arrays=True)
    if not isinstance(batch, dict):
        raise EdgesimError(f"{path}: expected a dict with data and labels")
    return batch


def _entry(path: Path, batch: dict[Any, Any], key: str) -> Any:
    # Batches written by Python 3 tools keep the original's bytes keys.
    value = batch.get(key, batch.get(key.encode()))
    if value is None:
        raise EdgesimError(f"{path}: has no entry {key!r}")
    return value
