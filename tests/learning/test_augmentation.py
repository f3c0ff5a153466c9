import numpy as np
import pytest
import torch
from begun import begun
from hypothesis import given
from hypothesis import strategies as st
from torchvision.transforms.v2 import functional as T

from edgesim.learning.augmentation import apply, draw_changes
from edgesim.learning.jobs import Arrived
from edgesim.streams import Streams


def _draws(kind, counts, devices=None, round=1, seed=0, size=(32, 32)):
    devices = range(len(counts)) if devices is None else devices
    return draw_changes(kind, Streams(seed), "augmentation", list(devices), round, counts, size)


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 11), st.integers(1, 9)),
    st.sampled_from([torch.uint8, torch.float32]),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=5),
)
def test_images_are_padded_cut_out_and_turned_over_as_torchvision_does(shape, kind, changes):
    _, height, width = shape
    images = torch.randint(0, 256, (len(changes), *shape), generator=torch.Generator().manual_seed(1)).to(kind)
    mine = apply(images, torch.tensor(changes))
    assert mine.dtype == kind
    for image, result, (flip, top, left) in zip(images, mine, changes, strict=True):
        expected = T.crop(T.pad(image, [4]), top, left, height, width)
        expected = T.horizontal_flip(expected) if flip else expected
        assert torch.equal(result, expected)


def test_every_crop_and_both_sides_are_equally_likely():
    (rows,) = _draws("crop-flip", [162_000])
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    # 162 outcomes of 1,000 each: chi-squared with 161 degrees of freedom, mean 161, deviation 17.9.
    assert len(counts) == 162
    assert abs(((counts - 1000) ** 2 / 1000).sum() - 161) < 4 * 17.9


def test_flip_turns_over_the_same_images_as_crop_flip_and_moves_none():
    (both,), (flip,) = _draws("crop-flip", [500]), _draws("flip", [500])
    np.testing.assert_array_equal(flip[:, 0], both[:, 0])
    assert np.unique(flip[:, 1:], axis=0).tolist() == [[4, 4]]
    images = torch.arange(500 * 6).reshape(500, 1, 2, 3)
    turned = apply(images, torch.from_numpy(flip))
    for index, (turn, _, _) in enumerate(flip):
        assert torch.equal(turned[index], images[index].flip(2) if turn else images[index])


@pytest.mark.parametrize(("kind", "numbers"), [("crop-flip", 3), ("fedstg", 10)])
def test_draws_are_a_function_of_seed_device_and_round_and_not_of_company(kind, numbers):
    together = _draws(kind, [30, 5, 12], devices=[4, 9, 2])
    for device, count, rows in zip([4, 9, 2], [30, 5, 12], together, strict=True):
        assert rows.shape == (count, numbers)
        np.testing.assert_array_equal(_draws(kind, [count], [device])[0], rows)
    for device, round_, seed in ((5, 1, 0), (4, 2, 0), (4, 1, 1)):
        assert not np.array_equal(_draws(kind, [30], [device], round_, seed)[0], together[0])
    assert _draws("none", [3, 4]) == [None, None]


def test_a_run_augments_its_jobs_and_its_start_model_by_config(make_learner):
    weights = {}
    for augment in ("none", "flip", "crop-flip", "crop-flip "):
        learner = make_learner(
            data={"augment": augment.strip()}, learning={"pretrain_max_epochs": 1, "steps": 2, "batch_size": 8}
        )
        learner.prepare(lambda _: None)
        started = learner.global_weights.clone()
        promises = begun(learner.open_round(1, 1), range(3))
        learner.merge([Arrived(promise) for promise in promises.values()], np.arange(3))
        weights[augment] = (started, learner.global_weights - started)
    for part in (0, 1):
        assert torch.equal(weights["crop-flip"][part], weights["crop-flip "][part])
        for one, other in (("none", "flip"), ("flip", "crop-flip"), ("none", "crop-flip")):
            assert not torch.equal(weights[one][part], weights[other][part])


def test_a_job_that_begins_within_a_round_has_the_changes_of_its_own_number(make_learner):
    """Without rounds a device may begin twice at one model, with another number of draw_changes each time."""
    learner = make_learner(data={"augment": "crop-flip"}, learning={"pretrain": False})
    changes = []
    for number, draw in ((1, 7), (1, 8), (2, 7)):
        training = learner.open_round(number, 1, np.full(30, draw))
        (promise,) = training.start(np.array([3]))
        changes.append(promise.job.changes)
    assert np.array_equal(changes[0], changes[2])
    assert not np.array_equal(changes[0], changes[1])
