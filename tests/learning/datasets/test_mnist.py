import gzip
import struct

import numpy as np
import pytest
import torchvision
from refusals import in_one_line

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
    ("name", "place", "theirs"),
    [
        ("mnist", "MNIST/raw", torchvision.datasets.MNIST),
        ("fashion-mnist", "FashionMNIST/raw", torchvision.datasets.FashionMNIST),
    ],
)
def test_mnist_and_fashion_mnist_are_what_torchvision_reads(tmp_path, name, place, theirs):
    dataset = _load(tmp_path, _arrays(), name, place)
    assert (dataset.class_count, dataset.image_shape) == (10, (1, 28, 28))
    halves = ((dataset.images[0], dataset.train_labels), (dataset.images[1], dataset.test_labels))
    for (images, labels), train in zip(halves, (True, False), strict=True):
        other = theirs(tmp_path, train)
        np.testing.assert_array_equal(images[:, 0], other.data)
        np.testing.assert_array_equal(labels, other.targets)


@pytest.mark.parametrize(("split", "first", "classes"), [("balanced", 0, 47), ("letters", 1, 26), ("byclass", 0, 62)])
def test_emnist_is_what_torchvision_reads_with_letters_counted_from_0(tmp_path, split, first, classes):
    arrays = _arrays(first, classes, f"emnist-{split}-", "test")
    dataset = _load(tmp_path, arrays, f"emnist-{split}", "EMNIST/raw")
    other = torchvision.datasets.EMNIST(tmp_path, split, train=False)
    np.testing.assert_array_equal(dataset.images[1][:, 0], other.data)
    np.testing.assert_array_equal(dataset.test_labels, other.targets - first)
    assert dataset.class_count == classes


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


def test_a_file_cut_short_is_refused(tmp_path):
    arrays = _arrays()
    dataset = _load(tmp_path, arrays)
    path = tmp_path / "MNIST/raw/train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-5])
    with in_one_line(r"ubyte: holds 15675 values, its header says 15680"):
        _ = dataset.images
    path.write_bytes(b"\0\0")
    with in_one_line("not an IDX file"):
        _load(tmp_path, {})


def test_a_broken_archive_is_refused(tmp_path):
    dataset = _load(tmp_path, _arrays(), zipped=True)
    path = tmp_path / "MNIST/raw/train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:2000])
    with in_one_line(r"ubyte.gz: cannot be read: .*; fetch it again"):
        _ = dataset.images
    path.write_bytes(b"not an archive")
    with in_one_line(r"ubyte.gz: cannot be read"):
        _load(tmp_path, {})
