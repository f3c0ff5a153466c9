import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.config import DataConfig
from edgesim.errors import EdgesimError
from edgesim.learning.datasets import load_dataset
from edgesim.learning.datasets.held_out import a_fifth, held_out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("didgits", "unknown 'didgits', did you mean 'digits'"),
        ("emnist-balance", "did you mean 'emnist-balanced'"),
        ("pictures/none", "unknown 'pictures/none'; expected digits, iris.* or that of a folder of images"),
    ],
)
def test_an_unknown_dataset_is_refused_with_the_known_ones(name, words):
    with pytest.raises(EdgesimError, match=words):
        load_dataset(DataConfig(dataset=name))


def test_an_image_size_is_for_folders_alone():
    with pytest.raises(EdgesimError, match=r"data\.image_size: is for a folder of images, not for 'digits'"):
        load_dataset(DataConfig(dataset="digits", image_size=16))


@given(st.lists(st.integers(0, 5), max_size=60), st.text(min_size=1, max_size=5))
def test_of_each_group_a_fifth_is_held_out_and_nothing_is_lost(groups, name):
    groups = np.array(groups, dtype=np.int64)
    train, test = held_out(name, groups)
    assert sorted([*train, *test]) == list(range(len(groups)))
    for group in set(groups.tolist()):
        assert (groups[test] == group).sum() == a_fifth(int((groups == group).sum()))
    np.testing.assert_array_equal(held_out(name, groups)[1], test)
