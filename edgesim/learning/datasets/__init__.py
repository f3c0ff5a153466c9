"""The data sets that a run can name, and their registry."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from edgesim.config import DataConfig
from edgesim.errors import EdgesimError
from edgesim.learning.datasets.cifar import cifar_files, load_cifar
from edgesim.learning.datasets.dataset import Dataset
from edgesim.learning.datasets.mnist import MNIST_SETS, load_mnist, mnist_files
from edgesim.learning.datasets.npz import load_npz
from edgesim.learning.datasets.published import path_of
from edgesim.learning.datasets.sklearn_sets import load_digits, load_table
from edgesim.registry import did_you_mean

__all__ = ["DATASETS", "Dataset", "dataset_files", "load_dataset"]

DATASETS: dict[str, Callable[[str, DataConfig], Dataset]] = {
    "digits": load_digits,
    **dict.fromkeys(("iris", "wine", "breast-cancer"), load_table),
    **dict.fromkeys(MNIST_SETS, load_mnist),
    **dict.fromkeys(("cifar10", "cifar100"), load_cifar),
}


_FILES: dict[str, Callable[[str, DataConfig], list[Path]]] = {
    **dict.fromkeys(MNIST_SETS, mnist_files),
    **dict.fromkeys(("cifar10", "cifar100"), cifar_files),
}


def dataset_files(config: DataConfig) -> list[Path]:
    """The files or the folder of the data set that a config names, none for those that come with scikit-learn.

    A published set is fetched if the config says so; raises `EdgesimError` when it is missing.
    """
    name = config.dataset
    if name in _FILES:
        return _FILES[name](name, config)
    return [] if name in DATASETS or name == "none" else [path_of(name, "data.dataset")]


def load_dataset(config: DataConfig) -> Dataset:
    """The data set that a config names; raises `EdgesimError` when it is missing, broken or has no use for a knob."""
    name, path = config.dataset, path_of(config.dataset, "data.dataset")
    if name not in DATASETS and path.is_dir():
        from edgesim.learning.datasets.folder import load_folder
        from edgesim.learning.datasets.speech import holds_words, load_speech

        if not holds_words(path):
            dataset = load_folder(path, config.image_size)
        elif config.image_size is None and config.augment == "none":
            dataset = load_speech(path)
        else:
            raise EdgesimError(
                f"data.image_size and data.augment: are for pictures, not for the sounds in {name!r}", "data.image_size"
            )
    elif name in DATASETS:
        dataset = DATASETS[name](name, config)
    elif path.suffix == ".npz":
        dataset = load_npz(path)
    elif len(path.parts) > 1:
        raise EdgesimError(f"data.dataset: no such folder: {name}", "data.dataset")
    else:
        hint = did_you_mean(name, DATASETS) or ";"
        raise EdgesimError(
            f"data.dataset: unknown {name!r}{hint} expected {', '.join(DATASETS)}, none, a path that ends in .npz or "
            "that of a folder of images or of wav files",
            "data.dataset",
        )
    if config.scale is not None:
        dataset = replace(dataset, fixed_scale=config.scale)
    channels, *size = dataset.image_shape
    if size == [1, 1] and (config.augment != "none" or config.image_size is not None):
        knob = "data.image_size" if config.augment == "none" else "data.augment"
        raise EdgesimError(f"{knob}: {name!r} holds no pictures; leave it out", knob)
    if config.image_size is None:
        return dataset
    return replace(dataset, image_shape=(channels, config.image_size, config.image_size))
