"""Office-Caltech-10 (Gong et al., CVPR 2012): photographs of ten kinds of things from four sources.

A folder of four domains, each of the same ten class folders. Of the images of each domain four fifths, rounded down,
are for training, the same in every run; all are brought to 32x32, as the DPFL benchmark has them.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.config import DataConfig
from edgesim.learning.datasets.dataset import Dataset, Domains
from edgesim.learning.datasets.folder import image_files
from edgesim.learning.datasets.held_out import held_out
from edgesim.learning.datasets.image_files import ImageFiles
from edgesim.learning.datasets.published import path_of

DOMAINS = ("amazon", "dslr", "webcam", "caltech")
_CLASS_COUNT = 10
_IMAGE_SIZE = 32


def office_caltech_folder(name: str, config: DataConfig) -> list[Path]:
    """The folder of the domains: ``name`` below ``data.folder``, or ``data.folder``; raises `EdgesimError`."""
    folder = path_of(config.folder, "data.folder")
    for place in (folder / name, folder):
        if any((place / domain).is_dir() for domain in DOMAINS):
            return [place]
    raise EdgesimError(
        f"data.dataset: {name} is not there, and cannot be downloaded: put its folders {', '.join(DOMAINS)}, each of "
        f"{_CLASS_COUNT} class folders of images, into {folder / name}, or set data.folder to where they lie",
        "data.dataset",
        "data.folder",
    )


def load_office_caltech(name: str, config: DataConfig) -> Dataset:
    """The data set; classes are numbered in the order of their names.

    Before images are asked for, only names are read. Raises `EdgesimError` that names the file or the folder.
    """
    (root,) = office_caltech_folder(name, config)
    classes = _classes(root)
    files, labels, domains = [], [], []
    for number, domain in enumerate(DOMAINS):
        for label, kind in enumerate(classes):
            images = image_files(root / domain / kind)
            if not images:
                raise EdgesimError(f"{root / domain / kind}: holds no images")
            files += [f"{domain}/{kind}/{file}" for file in images]
            labels += [label] * len(images)
            domains += [number] * len(images)
    halves = held_out(name, np.array(domains), lambda size: size - size * 4 // 5)
    train, test = ([files[place] for place in half] for half in halves)
    (train_labels, test_labels), of_domains = (
        [np.array(values, dtype=np.int64)[half] for half in halves] for values in (labels, domains)
    )
    decoded = ImageFiles(root, train, test, config.image_size or _IMAGE_SIZE)
    return replace(decoded.dataset(train_labels, test_labels, len(classes), Domains(DOMAINS, *of_domains)), name=name)


def _classes(root: Path) -> list[str]:
    """Names of the classes, in order; raises `EdgesimError` unless all domains have the same."""
    first: list[str] = []
    for domain in DOMAINS:
        folder = root / domain
        if not folder.is_dir():
            raise EdgesimError(f"{folder}: no such folder; expected the domains {', '.join(DOMAINS)} in {root}")
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        first = first or names
        if names != first:
            odd = min(set(names) ^ set(first))
            here, there = (domain, DOMAINS[0]) if odd in names else (DOMAINS[0], domain)
            raise EdgesimError(f"{folder}: {here} has a class {odd!r} and {there} has not; expected the same in all")
        if len(names) != _CLASS_COUNT:
            raise EdgesimError(f"{folder}: has {len(names)} class folders; expected {_CLASS_COUNT}")
    return first
