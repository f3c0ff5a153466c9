"""Data sets of a few classes of another, for scenarios whose papers tell these apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.base.on_disk import new_file
from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset

__all__ = ["save_classes"]


def save_classes(dataset: str, folder: Path, classes: Sequence[int], path: Path) -> None:
    """Write the images of some classes of a data set as an ``.npz``, their labels counted from 0 in that order.

    ``folder`` is that of torchvision's data sets. A file that is there is left as it is. Raises `EdgesimError`.
    """
    if path.is_file():
        return
    whole = load_dataset(DataConfig(dataset=dataset, folder=str(folder)))
    arrays: dict[str, Any] = {}
    parts = zip(("train", "test"), whole.load_images(), (whole.train_labels, whole.test_labels), strict=True)
    for part, images, labels in parts:
        kept = np.isin(labels, classes)
        arrays[f"{part}_images"] = np.moveaxis(images[kept], 1, -1)
        arrays[f"{part}_labels"] = np.searchsorted(classes, labels[kept])
    with new_file(path) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
