"""A dataset in one plain ``.npz`` of four arrays; labels are read at once, images when needed."""

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.memory import check_fits
from edgesim.learning.datasets.dataset import Dataset, Images

_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
_LONGEST_HEADER = 65_536
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def load_npz(path: Path) -> Dataset:
    """Dataset of ``train_images``, ``train_labels``, ``test_images`` and ``test_labels``.

    Images are [n, H, W, C] or [n, H, W], uint8 or float; labels are integers [n]. Raises `EdgesimError` that
    names the file and the array.
    """
    if not path.is_file():
        raise EdgesimError(
            f"{path}: no such file; data.dataset is a path to an .npz of {', '.join(_ARRAYS)}", "data.dataset"
        )
    try:
        headers = _read_headers(path)
    except (zipfile.BadZipFile, OSError, ValueError, KeyError) as error:
        raise EdgesimError(f"{path}: not a readable .npz: {error}") from None
    for name in _ARRAYS:
        if name not in headers:
            raise EdgesimError(f"{path}: no array {name!r}; expected {', '.join(_ARRAYS)}")
        if headers[name][1].hasobject:
            raise EdgesimError(f"{path}: {name} holds Python objects; save it as a plain numeric array")
    train_shape, test_shape = (_check_images(path, f"{part}_images", *headers[f"{part}_images"]) for part in _PARTS)
    if train_shape != test_shape:
        raise EdgesimError(
            f"{path}: test_images are {_words(test_shape)} but train_images are {_words(train_shape)}; "
            "expected the same shape"
        )
    for name in _ARRAYS:
        check_fits(math.prod(headers[name][0]) * headers[name][1].itemsize, f"{path}: {name}")
    for part in _PARTS:
        _check_labels(path, f"{part}_labels", headers[f"{part}_labels"][0], headers[f"{part}_images"][0][0])
    train_labels, test_labels = (_read_labels(path, part) for part in _PARTS)
    class_count = int(train_labels.max()) + 1
    if test_labels.max() >= class_count:
        raise EdgesimError(
            f"{path}: test_labels has class {test_labels.max()}, out of range: train_labels stops at {class_count - 1}"
        )
    return Dataset(
        name=path.stem,
        train_labels=train_labels,
        test_labels=test_labels,
        class_count=class_count,
        image_shape=train_shape,
        load_images=lambda: (_channels_first(path, _ARRAYS[0]), _channels_first(path, _ARRAYS[2])),
    )


_PARTS = ("train", "test")


def _read_headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and type of each array, without reading the arrays."""
    headers = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            with archive.open(entry) as file:
                # A header may say that it goes on for gigabytes.
                start = io.BytesIO(file.read(_LONGEST_HEADER))
                read_header = _HEADERS[np.lib.format.read_magic(start)]
                shape, _, dtype = read_header(start)
                size = archive.getinfo(entry).file_size - start.tell()
                if min(shape, default=0) < 0 or (not dtype.hasobject and math.prod(shape) * dtype.itemsize != size):
                    raise ValueError(f"{entry} is declared as {_words(shape)} of {dtype}, but holds {size} bytes")
                headers[entry.removesuffix(".npy")] = (shape, dtype)
    return headers


def _check_images(path: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, int, int]:
    if dtype != np.uint8 and dtype.kind != "f":
        raise EdgesimError(f"{path}: {name} is {dtype}; expected uint8 or float pixels")
    if len(shape) not in (3, 4) or 0 in shape:
        raise EdgesimError(f"{path}: {name} has shape {_words(shape)}; expected [n, H, W, C] or [n, H, W], none empty")
    if len(shape) == 4 and shape[1] in (1, 3) and shape[3] not in (1, 3, 4):
        raise EdgesimError(f"{path}: {name} has shape {_words(shape)}, channels first; expected [n, H, W, C]")
    return (shape[3] if len(shape) == 4 else 1, shape[1], shape[2])


def _check_labels(path: Path, name: str, shape: tuple[int, ...], images: int) -> None:
    if shape != (images,):
        raise EdgesimError(f"{path}: {name} has shape {_words(shape)}; expected one label for each of {images} images")


def _read_labels(path: Path, part: str) -> Integers:
    name = f"{part}_labels"
    labels = _read(path, name)
    if labels.dtype.kind not in "iu":
        raise EdgesimError(f"{path}: {name} is {labels.dtype}; expected integers from 0")
    # More classes than training images can only be a mistake, and would make a huge model of it.
    too_large = part == "train" and labels.max() >= len(labels)
    if too_large or labels.min() < 0:
        extreme = labels.max() if too_large else labels.min()
        raise EdgesimError(f"{path}: {name} has the label {extreme}, out of range; expected classes counted from 0")
    absent = np.setdiff1d(np.arange(labels.max() + 1), labels)
    if part == "train" and len(absent):
        raise EdgesimError(
            f"{path}: {name} has the label {labels.max()} but not {absent[0]}; expected images of every class from 0"
        )
    return labels.astype(np.int64)


def _channels_first(path: Path, name: str) -> Images:
    images = _read(path, name)
    images = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    if images.dtype != np.uint8:
        with np.errstate(over="ignore"):
            images = images.astype(np.float32)
        if not np.isfinite(images).all():
            raise EdgesimError(f"{path}: {name} holds values that are not finite; expected finite pixels")
    return np.ascontiguousarray(images)


def _read(path: Path, name: str) -> Images:
    try:
        with np.load(path, allow_pickle=False) as archive:
            array: Images = archive[name]
            return array
    except (zipfile.BadZipFile, OSError, ValueError, EOFError) as error:
        raise EdgesimError(f"{path}: {name} cannot be read: {error}") from None


def _words(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
