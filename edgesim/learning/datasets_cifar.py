"""CIFAR-10 and CIFAR-100 in the folders that torchvision unpacks; their pickles are read by `unpickle`."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.errors import EdgesimError
from edgesim.learning.datasets import Dataset, Images
from edgesim.learning.unpickle import read_plain
from edgesim.selection.view import Integers

_SHAPE = (3, 32, 32)
_FOLDERS = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}
_TRAIN = {"cifar10": [f"data_batch_{part}" for part in range(1, 6)], "cifar100": ["train"]}
_TEST = {"cifar10": ["test_batch"], "cifar100": ["test"]}
_LABELS = {"cifar10": "labels", "cifar100": "fine_labels"}
_CLASSES = {"cifar10": 10, "cifar100": 100}


def load_cifar(name: str, folder: Path) -> Dataset:
    """Dataset ``cifar10`` or ``cifar100`` (fine labels) below a folder; raises `EdgesimError`."""
    train = [folder / _FOLDERS[name] / part for part in _TRAIN[name]]
    test = [folder / _FOLDERS[name] / part for part in _TEST[name]]
    for path in train + test:
        if not path.is_file():
            raise EdgesimError(
                f"{path}: missing; unpack the Python version of {name} so that "
                f"{folder / _FOLDERS[name]} exists, or set data.folder"
            )
    return Dataset(
        name=name,
        train_labels=_labels(name, train),
        test_labels=_labels(name, test),
        class_count=_CLASSES[name],
        image_shape=_SHAPE,
        load_images=partial(_images, train, test),
    )


def _labels(name: str, paths: list[Path]) -> Integers:
    parts = []
    for path in paths:
        labels = np.asarray(_entry(path, _LABELS[name]))
        in_range = labels.ndim == 1 and labels.dtype.kind in "iu" and labels.size > 0
        if not in_range or labels.min() < 0 or labels.max() >= _CLASSES[name]:
            raise EdgesimError(f"{path}: {_LABELS[name]} are not integers from 0 to {_CLASSES[name] - 1}")
        if len(labels) != len(_pixels(path)):
            raise EdgesimError(f"{path}: {len(labels)} labels for {len(_pixels(path))} images")
        parts.append(labels.astype(np.int64))
    return np.concatenate(parts)


def _images(train: list[Path], test: list[Path]) -> tuple[Images, Images]:
    first, second = (np.concatenate([_pixels(path) for path in paths]).reshape(-1, *_SHAPE) for paths in (train, test))
    return first, second


def _pixels(path: Path) -> Images:
    pixels = _entry(path, "data")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3072,):
        raise EdgesimError(f"{path}: data is not a uint8 array of n x 3072 pixels")
    return pixels


def _entry(path: Path, key: str) -> Any:
    batch = read_plain(path)
    if not isinstance(batch, dict):
        raise EdgesimError(f"{path}: expected a dict with data and labels")
    # Batches written by Python 3 tools keep the original's bytes keys.
    value = batch.get(key, batch.get(key.encode()))
    if value is None:
        raise EdgesimError(f"{path}: has no entry {key!r}")
    return value
