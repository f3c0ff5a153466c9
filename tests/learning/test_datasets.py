import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from edgesim.config import DataConfig
from edgesim.errors import EdgesimError
from edgesim.learning.datasets import load_dataset


def test_digits_have_36_test_images_per_class_and_lose_none():
    dataset = load_dataset(DataConfig(dataset="digits"))
    assert np.bincount(dataset.test_labels).tolist() == [36] * 10
    assert len(dataset.train_labels) == 1797 - 360
    train, test = dataset.images
    assert train.shape == (1437, 1, 8, 8)
    assert test.dtype == np.uint8
    whole = load_digits()
    mine = sorted(
        (int(label), image.tobytes())
        for images, labels in ((train, dataset.train_labels), (test, dataset.test_labels))
        for image, label in zip(images, labels, strict=True)
    )
    theirs = sorted(
        (int(label), image.astype(np.uint8).tobytes()) for image, label in zip(whole.images, whole.target, strict=True)
    )
    assert mine == theirs


def test_the_digits_split_is_the_same_each_time():
    first, second = (load_dataset(DataConfig(dataset="digits")) for _ in range(2))
    assert first.digest == second.digest


def test_digits_are_divided_by_16():
    mean, divisor = load_dataset(DataConfig(dataset="digits")).normalisation
    assert (mean.tolist(), divisor.tolist()) == ([0.0], [16.0])


@pytest.fixture
def arrays():
    random = np.random.default_rng(1)
    return {
        "train_images": random.integers(0, 256, (12, 5, 6, 3), dtype=np.uint8),
        "train_labels": (np.arange(12) % 3).astype(np.uint8),
        "test_images": random.integers(0, 256, (6, 5, 6, 3), dtype=np.uint8),
        "test_labels": (np.arange(6) % 3).astype(np.uint8),
    }


def _load(tmp_path, arrays):
    path = tmp_path / "own.npz"
    np.savez_compressed(path, **arrays)
    return load_dataset(DataConfig(dataset=str(path)))


def test_an_npz_is_read_channels_first_and_images_only_when_asked(tmp_path, arrays):
    dataset = _load(tmp_path, arrays)
    assert (dataset.class_count, dataset.image_shape) == (3, (3, 5, 6))
    assert dataset.train_labels.dtype == np.int64
    assert "images" not in vars(dataset)
    assert dataset.images[0][7, 2, 4, 5] == arrays["train_images"][7, 4, 5, 2]


@pytest.mark.parametrize("kind", ["uint8", "float64"])
def test_channels_are_standardised_by_the_training_images(tmp_path, arrays, kind):
    arrays |= {name: arrays[name].astype(kind) for name in ("train_images", "test_images")}
    mean, deviation = _load(tmp_path, arrays).normalisation
    np.testing.assert_allclose(mean, arrays["train_images"].mean(axis=(0, 1, 2), dtype=float), rtol=1e-6)
    np.testing.assert_allclose(deviation, arrays["train_images"].std(axis=(0, 1, 2), dtype=float), rtol=1e-6)


def test_grey_images_get_one_channel(tmp_path, arrays):
    arrays |= {name: arrays[name][..., 0] for name in ("train_images", "test_images")}
    dataset = _load(tmp_path, arrays)
    assert dataset.image_shape == (1, 5, 6)
    assert dataset.images[1].shape == (6, 1, 5, 6)


def test_the_digest_follows_the_content(tmp_path, arrays):
    before = _load(tmp_path, arrays).digest
    assert _load(tmp_path, arrays).digest == before
    arrays["test_images"][0, 0, 0, 0] ^= 1
    assert _load(tmp_path, arrays).digest != before


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("test_labels", lambda _: None, "no array 'test_labels'"),
        ("train_labels", lambda a: a[:-1], "one label for each of 12 images"),
        ("train_labels", lambda a: a.astype(float), "float64; expected integers"),
        ("train_labels", lambda a: a.astype(int) - 1, "the label -1, out of range"),
        ("train_labels", lambda a: a.astype(int) + 1000, "the label 1002, out of range"),
        ("test_labels", lambda a: a + 5, "class 7, out of range: train_labels stops at 2"),
        ("test_images", lambda a: a[:, :4], "test_images are 3x4x6 but train_images are 3x5x6"),
        ("train_images", lambda a: a.astype(np.int32), "train_images is int32; expected uint8 or float"),
        ("train_images", lambda a: a.reshape(12, -1), r"shape 12x90; expected \[n, H, W, C\]"),
        ("train_images", lambda a: a.astype(object), "train_images holds Python objects"),
    ],
)
def test_a_bad_npz_is_one_line_that_names_file_and_array(tmp_path, arrays, name, change, words):
    arrays[name] = change(arrays[name])
    arrays = {key: value for key, value in arrays.items() if value is not None}
    with pytest.raises(EdgesimError, match=words) as caught:
        _load(tmp_path, arrays)
    assert "own.npz: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pixels_that_are_not_finite_are_refused_when_read(tmp_path, arrays):
    arrays["train_images"] = arrays["train_images"].astype(np.float32)
    arrays["train_images"][3, 0, 0, 0] = np.nan
    dataset = _load(tmp_path, arrays)
    with pytest.raises(EdgesimError, match="train_images holds values that are not finite"):
        _ = dataset.images


def test_a_file_that_is_no_npz_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(EdgesimError, match=r"text.npz: not a readable \.npz"):
        load_dataset(DataConfig(dataset=str(tmp_path / "text.npz")))
    with pytest.raises(EdgesimError, match=r"gone.npz: no such file"):
        load_dataset(DataConfig(dataset=str(tmp_path / "gone.npz")))


def test_an_unknown_dataset_is_refused_with_the_known_ones():
    with pytest.raises(EdgesimError, match="unknown 'mnist'; expected digits, cifar10"):
        load_dataset(DataConfig(dataset="mnist"))


def _write_batch(path, labels, key, first):
    rows = (np.arange(len(labels) * 3072) + first).astype(np.uint8).reshape(-1, 3072)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Protocol 2 with byte keys is what a Python 3 reader sees of the original files.
    path.write_bytes(pickle.dumps({b"data": rows, key: labels}, protocol=2))
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


def test_cifar100_has_fine_labels(tmp_path):
    for part, labels in (("train", [0, 99, 55]), ("test", [42])):
        _write_batch(tmp_path / "cifar-100-python" / part, labels, b"fine_labels", 0)
    dataset = load_dataset(DataConfig(dataset="cifar100", folder=str(tmp_path)))
    assert (dataset.train_labels.tolist(), dataset.class_count) == ([0, 99, 55], 100)


def test_a_missing_cifar_says_where_to_put_it(tmp_path):
    with pytest.raises(EdgesimError, match=r"data_batch_1: missing; unpack .* or set data.folder"):
        load_dataset(DataConfig(dataset="cifar10", folder=str(tmp_path)))


def test_cifar_labels_out_of_range_are_refused(tmp_path):
    for part, labels in (("train", [0, 100]), ("test", [42])):
        _write_batch(tmp_path / "cifar-100-python" / part, labels, b"fine_labels", 0)
    with pytest.raises(EdgesimError, match="train: fine_labels are not integers from 0 to 99"):
        load_dataset(DataConfig(dataset="cifar100", folder=str(tmp_path)))
