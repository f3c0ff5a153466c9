"""Images that no device holds alone: a public set that all have, and images on which the server validates.

Both are carved out of the training set before it is divided. The public set holds the first images of each class in a
random order that is named for the data set. ``other`` takes another data set instead, made to look like the run's own.
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import DataConfig
from edgesim.learning.datasets.dataset import Dataset, Images
from edgesim.streams import Streams

OTHERS = {"digits": "fashion-mnist", "fashion-mnist": "cifar10", "cifar10": "fashion-mnist"}
"""The public set that ``other`` takes for each data set."""
OTHER_PER_CLASS = 500
SMALL_PER_CLASS = 200
"""Images of a class that ``data.small`` leaves."""
_DIGITS_PER_CLASS = 20
_GREY = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue (ITU-R BT.601)."""


@dataclass(frozen=True, eq=False)
class Shared:
    """A data set with the indices of its private and of its public training images."""

    dataset: Dataset
    private: Integers
    """Indices of the images that are divided among the devices, ascending, [n]."""
    public: Integers
    """Indices [m], class after class in turn: in each prefix the counts of classes differ by at most 1."""
    validation: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Indices of the images that the server alone has, ascending, [v]."""


def share_out(dataset: Dataset, data: DataConfig, other: Dataset | None = None) -> Shared:
    """Private and public images by a config; ``other`` is the data set of `OTHERS`, if the config asks for it.

    Raises `EdgesimError` where a class has too few images.
    """
    left = np.arange(len(dataset.train_labels))
    public = np.empty(0, dtype=np.int64)
    if data.public == "carved":
        public = _first_of_each(dataset, left, _per_class(dataset, data), "public", "data.public_per_class", spare=1)
        left = np.setdiff1d(left, public)
    validation = np.empty(0, dtype=np.int64)
    if data.validation_per_class is not None:
        count, key = data.validation_per_class, "data.validation_per_class"
        validation = np.sort(_first_of_each(dataset, left, count, "validation", key, spare=1))
        left = np.setdiff1d(left, validation)
    if data.small:
        left = np.sort(_first_of_each(dataset, left, SMALL_PER_CLASS, "small", "data.small"))
    if other is None:
        return Shared(dataset, left, public, validation)
    chosen = _first_of_each(other, np.arange(len(other.train_labels)), OTHER_PER_CLASS, "public", "data.public")
    first = len(dataset.train_labels)
    joined = replace(
        dataset,
        train_labels=np.concatenate([dataset.train_labels, other.train_labels[chosen]]),
        load_images=partial(_joined, dataset, other, chosen),
        own_images=first,
        digest_images=lambda: f"{dataset.digest} {other.digest}",
    )
    return Shared(joined, left, np.arange(first, first + len(chosen)), validation)


def _per_class(dataset: Dataset, data: DataConfig) -> int:
    """Public images of a class: 20 of digits, else a tenth of the smallest class, unless the config says."""
    if data.public_per_class is not None:
        return data.public_per_class
    if dataset.name == "digits":
        return _DIGITS_PER_CLASS
    return max(1, int(np.bincount(dataset.train_labels, minlength=dataset.class_count).min()) // 10)


def _first_of_each(dataset: Dataset, left: Integers, count: int, name: str, field: str, spare: int = 0) -> Integers:
    """The first ``count`` images of each class among ``left``, in a random order by data set and use.

    At least ``spare`` images of each class have to remain.
    """
    order = left[Streams(0).generator(f"{dataset.name}-{name}").permutation(len(left))]
    of_class = [order[dataset.train_labels[order] == label] for label in range(dataset.class_count)]
    for label, members in enumerate(of_class):
        if len(members) < count + spare:
            raise EdgesimError(
                f"{field}: takes {count} images of each class, and class {label} of {dataset.name!r} has "
                f"{len(members)} for training" + (", of which one has to be left" if spare else ""),
                field,
            )
    return np.stack([members[:count] for members in of_class], axis=1).reshape(-1)


def _joined(own: Dataset, other: Dataset, chosen: Integers) -> tuple[Images, Images]:
    """Images of a data set, and behind those for training some of another one in its size, channels and range."""
    import torch
    from torch.nn.functional import interpolate

    train, test = own.images
    channels, *size = train.shape[1:]
    foreign = other.images[0][chosen].astype(np.float64)
    if foreign.shape[1] != channels:
        foreign = np.tensordot(foreign, _GREY, (1, 0))[:, None] if channels == 1 else np.repeat(foreign, channels, 1)
    resized = interpolate(torch.from_numpy(foreign), size, mode="bilinear", antialias=True).numpy()
    top = own.fixed_scale if own.name == "digits" else 255.0
    assert top is not None
    return np.concatenate([train, np.rint(resized * (top / 255)).astype(train.dtype)]), test
