import numpy as np
import pytest
from refusals import in_one_line

from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset


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
    # Grey images get one channel.
    dataset = _load(tmp_path, arrays | {name: arrays[name][..., 0] for name in ("train_images", "test_images")})
    assert (dataset.image_shape, dataset.images[1].shape) == ((1, 5, 6), (6, 1, 5, 6))


@pytest.mark.parametrize("kind", ["uint8", "float64"])
def test_channels_are_standardised_by_the_training_images(tmp_path, arrays, kind):
    arrays |= {name: arrays[name].astype(kind) for name in ("train_images", "test_images")}
    mean, deviation = _load(tmp_path, arrays).normalisation
    np.testing.assert_allclose(mean, arrays["train_images"].mean(axis=(0, 1, 2), dtype=float), rtol=1e-6)
    np.testing.assert_allclose(deviation, arrays["train_images"].std(axis=(0, 1, 2), dtype=float), rtol=1e-6)


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
        ("train_labels", lambda a: np.where(a == 1, 11, a), "the label 11 but not 1; expected images of every class"),
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
    with in_one_line(words) as caught:
        _load(tmp_path, arrays)
    assert "own.npz: " in str(caught.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, 1e300], ids=["nan", "beyond 32 bits"])
def test_pixels_that_are_not_finite_are_refused_when_read(tmp_path, arrays, value):
    dataset = _load(tmp_path, arrays | {"train_images": np.full((12, 5, 6, 3), value)})
    with in_one_line("train_images holds values that are not finite"):
        _ = dataset.images


def test_a_file_that_is_no_npz_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    with in_one_line(r"text.npz: not a readable \.npz"):
        load_dataset(DataConfig(dataset=str(tmp_path / "text.npz")))
    with in_one_line(r"gone.npz: no such file"):
        load_dataset(DataConfig(dataset=str(tmp_path / "gone.npz")))
