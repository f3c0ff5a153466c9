"""MNIST and its kin, in IDX files: labels are read at once, images when needed.

MNIST (LeCun et al., 1998), Fashion-MNIST (Xiao et al., 2017) and EMNIST (Cohen et al., 2017) with its six splits.
EMNIST's images stay as they are published: rows and columns are swapped. Its letters are counted from 0 here.
"""

from pathlib import Path

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import DataConfig
from edgesim.learning.datasets.dataset import Dataset, Images
from edgesim.learning.datasets.idx import read_array, read_shape
from edgesim.learning.datasets.published import PublishedDataset, locate

_PARTS = ("images-idx3-ubyte", "labels-idx1-ubyte")
_FILES = [f"{half}-{part}" for half in ("train", "t10k") for part in _PARTS]
_SERVERS = ["https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"]
_FASHION_SERVERS = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
_MNIST_MD5 = [
    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "d53e105ee54ea40749a09fcbcd1e9432",
    "9fb629c4189551a2d022fa330f9573f3",
    "ec29112dd5afa0611ce80d1b7f02629c",
]
_FASHION_MD5 = [
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
]

_EMNIST_CLASSES = {"balanced": 47, "byclass": 62, "bymerge": 47, "letters": 26, "digits": 10, "mnist": 10}


def _gzipped(md5: list[str]) -> dict[str, str]:
    return {f"{file}.gz": digest for file, digest in zip(_FILES, md5, strict=True)}


def _emnist(split: str) -> PublishedDataset:
    files = [f"emnist-{split}-{half}-{part}" for half in ("train", "test") for part in _PARTS]
    archives = {"gzip.zip": "58c8d27c78d21e728a6bc7b3cc06412e"}
    servers = ["https://biometrics.nist.gov/cs_links/EMNIST/"]
    return PublishedDataset(f"emnist-{split}", "EMNIST/raw", files, servers, archives, "gzip")


_SETS: dict[str, tuple[PublishedDataset, int]] = {
    "mnist": (PublishedDataset("mnist", "MNIST/raw", _FILES, _SERVERS, _gzipped(_MNIST_MD5)), 10),
    "fashion-mnist": (
        PublishedDataset("fashion-mnist", "FashionMNIST/raw", _FILES, _FASHION_SERVERS, _gzipped(_FASHION_MD5)),
        10,
    ),
    **{f"emnist-{split}": (_emnist(split), classes) for split, classes in _EMNIST_CLASSES.items()},
}
MNIST_SETS = tuple(_SETS)


def mnist_files(name: str, config: DataConfig) -> list[Path]:
    """Images and labels for training and for testing of one of `MNIST_SETS`; raises `EdgesimError`."""
    return locate(_SETS[name][0], config, ("", ".gz"))


def load_mnist(name: str, config: DataConfig) -> Dataset:
    """A data set of `MNIST_SETS`, plain or gzipped; raises `EdgesimError` that names the file."""
    class_count = _SETS[name][1]
    train_images, train_labels, test_images, test_labels = mnist_files(name, config)
    first = 1 if name == "emnist-letters" else 0
    (train_count, height, width), (test_count, *test_size) = (read_shape(p, 3) for p in (train_images, test_images))
    if test_size != [height, width]:
        raise EdgesimError(
            f"{test_images}: images are {test_size[0]}x{test_size[1]}, those for training {height}x{width}"
        )
    return Dataset(
        name=name,
        train_labels=_labels(train_labels, first, class_count, train_count),
        test_labels=_labels(test_labels, first, class_count, test_count),
        class_count=class_count,
        image_shape=(1, height, width),
        load_images=lambda: (_images(train_images), _images(test_images)),
    )


def _labels(path: Path, first: int, class_count: int, images: int) -> Integers:
    labels = read_array(path, 1).astype(np.int64) - first
    if len(labels) != images:
        raise EdgesimError(f"{path}: {len(labels)} labels for {images} images")
    if images == 0 or labels.min() < 0 or labels.max() >= class_count:
        raise EdgesimError(f"{path}: labels are not whole numbers from {first} to {first + class_count - 1}")
    return labels


def _images(path: Path) -> Images:
    # Copied: an array over the bytes of a file cannot be written to, which torch warns of.
    return read_array(path, 3)[:, None].copy()
