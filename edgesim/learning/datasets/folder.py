"""A data set in a folder of image files, whose paths name class and domain.

Below the root lie ``train/`` and ``test/`` (or ``val/``), and in each ``CLASS/FILE`` or ``DOMAIN/CLASS/FILE``. Without
``train/`` the same lies at the root, as PACS and Office-Home come, and a fifth of each class and domain is for testing.
Tiny-ImageNet's layout is understood: a folder ``images`` between a class and its files, and validation images whose
classes stand in ``val_annotations.txt``.
"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import files_below
from edgesim.base.text_file import read_text
from edgesim.learning.datasets.dataset import Dataset, Domains
from edgesim.learning.datasets.held_out import held_out
from edgesim.learning.datasets.image_files import ImageFiles

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_ANNOTATIONS = "val/val_annotations.txt"


class _Sample(NamedTuple):
    file: str
    """Path below the root, with slashes."""
    label: str
    domain: str | None


def load_folder(root: Path, image_size: int | None) -> Dataset:
    """The data set of a folder; classes and domains are numbered in the order of their names.

    Images become RGB; ``image_size`` brings them all to one height and width. Before images are asked for, only the
    paths and the first image's header are read. Raises `EdgesimError` that names the file or the folder.
    """
    train, test = _halves(root, image_files(root))
    if len({sample.domain is None for sample in train + test}) > 1:
        odd = next(sample for sample in train + test if (sample.domain is None) != (train[0].domain is None))
        raise EdgesimError(
            f"{root / odd.file}: some images lie in CLASS/FILE and some in DOMAIN/CLASS/FILE; choose one for all"
        )
    classes = sorted({sample.label for sample in train})
    for sample in test:
        if sample.label not in classes:
            raise EdgesimError(f"{root / sample.file}: its class {sample.label!r} has no image for training")
    images = ImageFiles(root, [sample.file for sample in train], [sample.file for sample in test], image_size)
    train_labels, test_labels = (_numbers(classes, [sample.label for sample in half]) for half in (train, test))
    return images.dataset(train_labels, test_labels, len(classes), _domains(train, test))


def _domains(train: Sequence[_Sample], test: Sequence[_Sample]) -> Domains | None:
    if train[0].domain is None:
        return None
    names = sorted({str(sample.domain) for sample in (*train, *test)})
    return Domains(tuple(names), *(_numbers(names, [sample.domain for sample in half]) for half in (train, test)))


def _numbers(names: Sequence[Hashable], called: Sequence[Hashable]) -> Integers:
    """Places of ``called`` [n] among the names, [n]."""
    place = {name: index for index, name in enumerate(names)}
    return np.array([place[name] for name in called], dtype=np.int64)


def image_files(root: Path) -> list[str]:
    """Paths below the root of all images that are not hidden, in order; raises `EdgesimError` as `files_below`."""
    return sorted(file for file in files_below(root) if file.lower().endswith(_SUFFIXES))


def _halves(root: Path, files: list[str]) -> tuple[list[_Sample], list[_Sample]]:
    """Samples for training and for testing, neither empty."""
    if not any(file.startswith("train/") for file in files):
        train, test = _split(root.resolve().name, [_sample(root, file, 0) for file in files])
    else:
        train = [_sample(root, file, 1) for file in files if file.startswith("train/")]
        if (root / _ANNOTATIONS).is_file():
            test = _annotated(root, set(files))
        else:
            half = "test/" if any(file.startswith("test/") for file in files) else "val/"
            test = [_sample(root, file, 1) for file in files if file.startswith(half)]
    for half, samples in (("train", train), ("test", test)):
        if not samples:
            raise EdgesimError(f"{root}: no images to {half} with; {_EXPECTED}")
    return train, test


_EXPECTED = "expected CLASS/FILE or DOMAIN/CLASS/FILE below train/ and test/ (or val/), or without these below the root"


def _sample(root: Path, file: str, skip: int) -> _Sample:
    """Class and domain of a file by the folders above it; Tiny-ImageNet's ``images`` is neither."""
    folders = file.split("/")[skip:-1]
    if len(folders) > 1 and folders[-1] == "images":
        folders.pop()
    if len(folders) not in (1, 2):
        raise EdgesimError(f"{root / file}: lies {len(folders)} folders deep; {_EXPECTED}")
    return _Sample(file, folders[-1], folders[0] if len(folders) == 2 else None)


def _annotated(root: Path, files: set[str]) -> list[_Sample]:
    """Tiny-ImageNet's validation images: lines of file name, class and a box, between tabs."""
    samples = []
    for number, line in enumerate(read_text(root / _ANNOTATIONS).splitlines(), start=1):
        name, *rest = line.split("\t")
        file = f"val/images/{name}"
        if not rest or file not in files:
            raise EdgesimError(f"{root / _ANNOTATIONS}: line {number}: expected an image of val/images and its class")
        samples.append(_Sample(file, rest[0], None))
    return samples


def _split(name: str, samples: list[_Sample]) -> tuple[list[_Sample], list[_Sample]]:
    """A fifth of each class and domain for testing."""
    groups = [(sample.domain, sample.label) for sample in samples]
    numbers = _numbers([*dict.fromkeys(groups)], groups)
    train, test = ([samples[index] for index in half] for half in held_out(name, numbers))
    return train, test
