import pickle

import numpy as np
import pytest
import torchvision
from refusals import in_one_line

from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset


def _write_batch(path, labels, key, first):
    rows = (np.arange(len(labels) * 3072) + first).astype(np.uint8).reshape(-1, 3072)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Protocol 2 with byte keys is what a Python 3 reader sees of the original files.
    data = b"data" if isinstance(key, bytes) else "data"
    path.write_bytes(pickle.dumps({data: rows, key: labels}, protocol=2))
    return rows


def test_cifar10_is_read_from_torchvisions_folder(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    rows = [_write_batch(folder / f"data_batch_{n}", [n, 0, 9], b"labels", n) for n in range(1, 6)]
    _write_batch(folder / "test_batch", [4, 5], b"labels", 7)
    dataset = load_dataset(DataConfig(dataset="cifar10", folder=str(tmp_path)))
    assert dataset.train_labels.tolist() == [1, 0, 9, 2, 0, 9, 3, 0, 9, 4, 0, 9, 5, 0, 9]
    assert (dataset.test_labels.tolist(), dataset.class_count) == ([4, 5], 10)
    # Rows hold the red plane first, each plane row by row (CIFAR-10's own description).
    assert dataset.images[0][4, 1, 2, 3] == rows[1][1, 1024 + 2 * 32 + 3]


@pytest.mark.parametrize("below", ["", "cifar-100-python"])
def test_cifar_is_what_torchvision_reads_and_may_lie_in_the_folder_itself(tmp_path, below, monkeypatch):
    for part, labels in (("train", [3, 99, 55]), ("test", [42, 0])):
        _write_batch(tmp_path / "cifar-100-python" / part, labels, "fine_labels", len(labels))
    # The oracle is theirs, but for the sums of the published files.
    monkeypatch.setattr(torchvision.datasets.CIFAR100, "_check_integrity", lambda _: True)
    monkeypatch.setattr(torchvision.datasets.CIFAR100, "_load_meta", lambda _: None)
    dataset = load_dataset(DataConfig(dataset="cifar100", folder=str(tmp_path / below)))
    labels_of = dataset.train_labels, dataset.test_labels
    for images, labels, train in zip(dataset.images, labels_of, (True, False), strict=True):
        theirs = torchvision.datasets.CIFAR100(tmp_path, train)
        np.testing.assert_array_equal(images.transpose(0, 2, 3, 1), theirs.data)
        assert labels.tolist() == theirs.targets


def test_labels_out_of_range_and_missing_files_are_one_line(tmp_path):
    for part, labels in (("train", [0, 100]), ("test", [42])):
        _write_batch(tmp_path / "cifar-100-python" / part, labels, b"fine_labels", 0)
    for name, said in (
        ("cifar100", "train: fine_labels are not integers from 0 to 99"),
        ("cifar10", r"cifar10 is not there, .*cifar-10-batches-py/data_batch_1 is missing: put"),
    ):
        with in_one_line(said):
            load_dataset(DataConfig(dataset=name, folder=str(tmp_path)))
