import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from edgesim.base.errors import EdgesimError
from edgesim.config import DataConfig
from edgesim.config_file import parse
from edgesim.learning.datasets import load_dataset
from edgesim.learning.datasets.held_out import a_fifth, held_out
from edgesim.learning.tensors import DeviceData


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("didgits", "unknown dataset 'didgits', did you mean 'digits'. known: digits, .*, none, FILE.npz, a folder"),
        ("emnist-balance", "did you mean 'emnist-balanced'"),
        ("pictures/none", "no such folder: pictures/none"),
    ],
)
def test_an_unknown_dataset_is_refused_with_the_known_ones(name, words):
    with pytest.raises(EdgesimError, match=words):
        load_dataset(DataConfig(dataset=name))


@pytest.mark.parametrize(("knob", "value"), [("image_size", 16), ("augment", "flip")])
def test_a_table_holds_no_pictures(knob, value):
    with pytest.raises(EdgesimError, match=rf"data\.{knob}: 'iris' holds no pictures; leave it out"):
        load_dataset(DataConfig.model_validate({"dataset": "iris", knob: value}))


@pytest.mark.parametrize("size", [20, 5])
def test_pictures_in_arrays_are_brought_to_size_for_the_model(size):
    """As Pillow does it, whose pixels are floats of one channel."""
    stored = load_dataset(DataConfig(dataset="digits"))
    dataset = load_dataset(DataConfig(dataset="digits", image_size=size))
    assert dataset.image_shape == (1, size, size)
    assert dataset.digest != stored.digest
    shown, labels = DeviceData(dataset, torch.device("cpu")).test(torch.arange(9))
    small = DeviceData(stored, torch.device("cpu")).test(torch.arange(9))[0].numpy()
    expected = [Image.fromarray(picture[0]).resize((size, size), Image.Resampling.BILINEAR) for picture in small]
    np.testing.assert_allclose(shown[:, 0].numpy(), np.stack(expected), atol=1e-5)
    assert labels.tolist() == dataset.test_labels[:9].tolist()


def test_an_offset_is_taken_off_pixels_before_they_are_divided():
    """127.5 and 127.5 bring bytes to -1 to 1, as torchvision's Normalize(0.5, 0.5) does with its images of 0 to 1."""
    plain = load_dataset(DataConfig(dataset="digits", scale=8.0))
    dataset = load_dataset(DataConfig(dataset="digits", scale=8.0, offset=8.0))
    shown, _ = DeviceData(dataset, torch.device("cpu")).train(torch.arange(50))
    np.testing.assert_allclose(shown.numpy(), (dataset.images[0][:50].astype(float) - 8) / 8, atol=1e-6)
    assert (shown.min(), shown.max()) == (-1, 1)
    assert dataset.digest != plain.digest
    assert load_dataset(DataConfig(dataset="digits", scale=8.0, offset=0.0)).digest == plain.digest
    with pytest.raises(EdgesimError, match=r"^test: data\.offset = 8 needs data\.scale$"):
        parse({"data": {"dataset": "digits", "offset": 8.0}}, "test")


@given(st.lists(st.integers(0, 5), max_size=60), st.text(min_size=1, max_size=5))
def test_of_each_group_a_fifth_is_held_out_and_nothing_is_lost(groups, name):
    groups = np.array(groups, dtype=np.int64)
    train, test = held_out(name, groups)
    assert sorted([*train, *test]) == list(range(len(groups)))
    for group in set(groups.tolist()):
        assert (groups[test] == group).sum() == a_fifth(int((groups == group).sum()))
    np.testing.assert_array_equal(held_out(name, groups)[1], test)
