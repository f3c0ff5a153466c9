"""The data sets that a run can name, and their registry."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import look_up
from edgesim.config import DataConfig
from edgesim.learning.datasets.cifar import cifar_files, load_cifar
from edgesim.learning.datasets.dataset import Dataset
from edgesim.learning.datasets.mnist import MNIST_SETS, load_mnist, mnist_files
from edgesim.learning.datasets.npz import load_npz
from edgesim.learning.datasets.office_caltech import load_office_caltech, office_caltech_folder
from edgesim.learning.datasets.public import OTHERS, Shared, share_out
from edgesim.learning.datasets.published import NotThere, path_of
from edgesim.learning.datasets.sklearn_sets import load_digits, load_table

__all__ = ["DATASETS", "Dataset", "dataset_files", "is_downloaded_first", "load_dataset", "load_shared"]

DATASETS: dict[str, Callable[[str, DataConfig], Dataset]] = {
    "digits": load_digits,
    **dict.fromkeys(("iris", "wine", "breast-cancer"), load_table),
    **dict.fromkeys(MNIST_SETS, load_mnist),
    **dict.fromkeys(("cifar10", "cifar100"), load_cifar),
    "office-caltech": load_office_caltech,
}


_FILES: dict[str, Callable[[str, DataConfig], list[Path]]] = {
    **dict.fromkeys(MNIST_SETS, mnist_files),
    **dict.fromkeys(("cifar10", "cifar100"), cifar_files),
    "office-caltech": office_caltech_folder,
}


def dataset_files(config: DataConfig) -> list[Path]:
    """The files or the folder of the data set that a config names, none for those that come with scikit-learn.

    A published set is fetched if the config says so; raises `EdgesimError` when it is missing.
    """
    name = config.dataset
    if config.public == "other":
        own = dataset_files(config.model_copy(update={"public": "none"}))
        with _named_as_public():
            return own + dataset_files(_other(config))
    if name in _FILES:
        return _FILES[name](name, config)
    return [] if name in DATASETS or name == "none" else [path_of(name, "data.dataset")]


def is_downloaded_first(config: DataConfig) -> bool:
    """Whether a run would download the data set that a config names, since its files are missing."""
    try:
        dataset_files(config.model_copy(update={"download": False}))
    except NotThere:
        return config.download
    except EdgesimError:
        # Whoever loads the data set is told why that cannot be done.
        return False
    return False


def load_shared(config: DataConfig) -> Shared:
    """The data set that a config names, with its private and public images; raises `EdgesimError`."""
    other = None
    if config.public == "other":
        with _named_as_public():
            other = load_dataset(_other(config))
    return share_out(load_dataset(config), config, other)


@contextmanager
def _named_as_public() -> Iterator[None]:
    """Name ``data.public`` in errors about the data set of public images, which it chose."""
    try:
        yield
    except EdgesimError as error:
        text = str(error).replace("data.dataset:", "data.public:", 1)
        fields = ["data.public" if field == "data.dataset" else field for field in error.fields]
        raise type(error)(text, *fields) from None


def _other(config: DataConfig) -> DataConfig:
    """Section ``[data]`` of the data set from which ``other`` takes public images; raises `EdgesimError`."""
    if config.dataset not in OTHERS:
        raise EdgesimError(
            f"data.public: 'other' is for data.dataset = {', '.join(OTHERS)}, not {config.dataset!r}; use 'carved'",
            "data.public",
            "data.dataset",
        )
    return DataConfig(dataset=OTHERS[config.dataset], folder=config.folder, download=config.download)


def load_dataset(config: DataConfig) -> Dataset:
    """The data set that a config names; raises `EdgesimError` when it is missing, broken or has no use for a knob."""
    name = config.dataset
    dataset = DATASETS[name](name, config) if name in DATASETS else _of_path(name, config)
    if config.scale is not None:
        dataset = replace(dataset, fixed_scale=config.scale, fixed_offset=config.offset or 0.0)
    channels, *size = dataset.image_shape
    if size == [1, 1] and (config.augment != "none" or config.image_size is not None):
        knob = "data.image_size" if config.augment == "none" else "data.augment"
        raise EdgesimError(f"{knob}: {name!r} holds no pictures; leave it out", knob)
    if config.image_size is None:
        return dataset
    return replace(dataset, image_shape=(channels, config.image_size, config.image_size))


def _of_path(name: str, config: DataConfig) -> Dataset:
    """The data set in a file or a folder."""
    path = path_of(name, "data.dataset")
    if path.is_dir():
        from edgesim.learning.datasets.folder import load_folder
        from edgesim.learning.datasets.speech import holds_words, load_speech

        if not holds_words(path):
            return load_folder(path, config.image_size)
        if config.image_size is None and config.augment == "none":
            return load_speech(path)
        raise EdgesimError(
            f"data.image_size and data.augment: are for pictures, not for the sounds in {name!r}", "data.image_size"
        )
    if path.suffix == ".npz":
        return load_npz(path)
    if len(path.parts) > 1:
        raise EdgesimError(f"data.dataset: no such folder: {name}", "data.dataset")
    return look_up(DATASETS, name, "data.dataset", "none", "FILE.npz", "a folder of images or wav files")(name, config)
