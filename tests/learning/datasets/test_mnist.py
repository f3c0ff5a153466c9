import gzip
import struct

import numpy as np
import pytest
from refusals import in_one_line
from torchvision.datasets import EMNIST, MNIST, FashionMNIST

from edgesim.base.errors import EdgesimError
from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset


def _idx(array):
    array = np.asarray(array, dtype=np.uint8)
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def _write(folder, name, array, zipped=False):
    folder.mkdir(parents=True, exist_ok=True)
    if zipped:
        (folder / f"{name}.gz").write_bytes(gzip.compress(_idx(array)))
    else:
        (folder / name).write_bytes(_idx(array))


def _arrays(first=0, classes=10, prefix="", test="t10k"):
    random = np.random.default_rng(classes)
    arrays = {}
    for half, count in (("train", 2 * classes), (test, classes)):
        arrays[f"{prefix}{half}-images-idx3-ubyte"] = random.integers(0, 256, (count, 28, 28))
        arrays[f"{prefix}{half}-labels-idx1-ubyte"] = np.arange(count) % classes + first
    return arrays


def _load(tmp_path, arrays, name="mnist", below="MNIST/raw", zipped=False):
    for file, array in arrays.items():
        _write(tmp_path / below, file, array, zipped)
    return load_dataset(DataConfig(dataset=name, folder=str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "first", "classes"),
    [("mnist", 0, 10), ("fashion-mnist", 0, 10), ("emnist-balanced", 0, 47), ("emnist-letters", 1, 26)],
)
@pytest.mark.whole_family
def test_what_is_read_is_what_torchvision_reads_with_letters_counted_from_0(tmp_path, name, first, classes):
    kind, _, split = name.partition("-") if name.startswith("emnist") else (name, "", "")
    theirs = {"mnist": MNIST, "fashion-mnist": FashionMNIST, "emnist": EMNIST}[kind]
    arrays = _arrays(first, classes, f"emnist-{split}-", "test") if split else _arrays()
    dataset = _load(tmp_path, arrays, name, f"{theirs.__name__}/raw")
    assert (dataset.class_count, dataset.image_shape) == (classes, (1, 28, 28))
    for images, labels, train in zip(
        dataset.images, (dataset.train_labels, dataset.test_labels), (True, False), strict=True
    ):
        other = theirs(tmp_path, **{"split": split} if split else {}, train=train)
        np.testing.assert_array_equal(images[:, 0], other.data)
        np.testing.assert_array_equal(labels, other.targets - first)


def test_files_may_be_zipped_and_lie_in_the_folder_itself(tmp_path):
    arrays = _arrays()
    plain = _load(tmp_path / "plain", arrays)
    zipped = _load(tmp_path / "zipped", arrays, below="", zipped=True)
    # Labels are read at once, and images when they are asked for.
    assert "images" not in vars(zipped)
    assert zipped.digest == plain.digest
    assert zipped.images[0].flags.writeable


def test_missing_files_are_one_line_that_says_which_and_where(tmp_path):
    arrays = _arrays()
    del arrays["t10k-labels-idx1-ubyte"]
    with pytest.raises(EdgesimError) as caught:
        _load(tmp_path, arrays)
    assert str(caught.value) == (
        f"data.dataset: mnist is not there, {tmp_path}/MNIST/raw/t10k-labels-idx1-ubyte is missing: put "
        "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte there "
        "(.gz will do), or set data.folder to where they lie, or data.download = true"
    )


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("train-labels-idx1-ubyte", lambda a: a + 1, "train-labels-idx1-ubyte: labels are not .* 0 to 9"),
        ("t10k-labels-idx1-ubyte", lambda a: a[:-1], "t10k-labels-idx1-ubyte: 9 labels for 10 images"),
        ("t10k-images-idx3-ubyte", lambda a: a[:, 1:], "t10k-images-idx3-ubyte: images are 27x28, .* 28x28"),
        ("train-images-idx3-ubyte", lambda a: a[:, 0], "train-images-idx3-ubyte: not an IDX file of 3-dim"),
    ],
)
def test_bad_content_is_one_line_that_names_the_file(tmp_path, name, change, words):
    arrays = _arrays()
    arrays[name] = change(arrays[name])
    with in_one_line(words):
        _load(tmp_path, arrays)


@pytest.mark.parametrize(
    ("zipped", "kept", "said"),
    [
        (False, lambda content: content[:-5], "ubyte: holds 15675 values, its header says 15680"),
        (True, lambda content: content[:2000], r"ubyte.gz: cannot be read: .*; fetch it again"),
    ],
    ids=["cut short", "broken archive"],
)
def test_a_damaged_file_is_refused_when_its_images_are_asked_for_and_a_foreign_at_once(tmp_path, zipped, kept, said):
    dataset = _load(tmp_path, _arrays(), zipped=zipped)
    path = tmp_path / f"MNIST/raw/train-images-idx3-ubyte{'.gz' if zipped else ''}"
    path.write_bytes(kept(path.read_bytes()))
    with in_one_line(said):
        _ = dataset.images
    path.write_bytes(b"\0\0")
    with in_one_line(r"ubyte.gz: cannot be read" if zipped else "not an IDX file"):
        _load(tmp_path, {})
