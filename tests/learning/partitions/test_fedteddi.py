import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.partitions.fedteddi import FedTeddiPartition
from edgesim.streams import Streams

TEN = np.tile(np.arange(10), 140)
HUNDRED = np.repeat(np.arange(100), 400)


def _counts(frames, labels, classes):
    return np.array([[np.bincount(labels[c], minlength=classes) for c in clients] for clients in frames])


def test_frame_0_fills_the_slot_plan_of_the_paper():
    # fedteddi.md, section 6: classes 0, 1, 2 get 15 units each and 3, 4, 5 get 5 each; one-class clients
    # 5, 5, 5, 2, 2, 1; ten two-class clients of one unit of each.
    first = _counts(FedTeddiPartition().divide(TEN, 10, 30, 60, Streams(3)), TEN, 10)[0]
    assert first.sum(axis=0).tolist() == [450, 450, 450, 150, 150, 150, 0, 0, 0, 0]
    one_class = first[(first > 0).sum(axis=1) == 1]
    two_class = first[(first > 0).sum(axis=1) == 2]
    assert (len(one_class), len(two_class)) == (20, 10)
    assert (one_class > 0).sum(axis=0).tolist() == [5, 5, 5, 2, 2, 1, 0, 0, 0, 0]
    assert set(two_class[two_class > 0].tolist()) == {30}


def test_frame_1_gives_12_clients_30_images_of_a_new_class_three_per_class():
    frames = FedTeddiPartition().divide(TEN, 10, 30, 60, Streams(3))
    counts = _counts(frames, TEN, 10)
    new = counts[1][:, 6:]
    assert (new.sum(axis=1) == 30).sum() == 12
    assert (new > 0).sum(axis=0).tolist() == [3, 3, 3, 3]
    for before, after in zip(*frames, strict=True):
        kept = len(np.intersect1d(before, after))
        assert kept in (30, 60)
        assert len(after) == 60


def test_unweighted_drift_is_exactly_1_for_those_who_swapped_and_0_for_the_others():
    # Oracle T10 of fedteddi.md.
    before, after = _counts(FedTeddiPartition().divide(TEN, 10, 30, 60, Streams(0)), TEN, 10) / 60
    drift = np.abs(after - before).sum(axis=1)
    np.testing.assert_allclose(np.sort(drift), [0.0] * 18 + [1.0] * 12, atol=1e-12)


def test_the_hundred_class_plan_has_one_and_two_class_clients_and_two_waves_of_newcomers():
    frames = FedTeddiPartition().divide(HUNDRED, 100, 30, 300, Streams(5))
    assert [[len(np.unique(client)) for client in clients] for clients in frames] == [[300] * 30] * 3
    counts = _counts(frames, HUNDRED, 100)
    held = [tuple(sorted(row[row > 0].tolist())) for row in counts[0]]
    assert (held.count((300,)), held.count((100, 200))) == (10, 20)
    assert np.flatnonzero(counts[0].any(axis=0)).tolist() == list(range(30))
    changed = []
    for frame, classes in ((1, slice(30, 40)), (2, slice(40, 50))):
        new = counts[frame][:, classes]
        assert sorted(new[new > 0].tolist()) == [150] * 12
        assert (new > 0).any(axis=0).all()
        changed.append(set(np.flatnonzero(new.any(axis=1)).tolist()))
    assert changed[0].isdisjoint(changed[1])
    assert counts.sum(axis=2).tolist() == [[300] * 30] * 3


def test_sixty_devices_repeat_the_plan_and_24_get_new_classes():
    counts = _counts(FedTeddiPartition().divide(TEN, 10, 60, 60, Streams(0)), TEN, 10)
    assert counts[0].sum(axis=0).tolist() == [900, 900, 900, 300, 300, 300, 0, 0, 0, 0]
    assert (counts[1][:, 6:] > 0).sum(axis=0).tolist() == [6, 6, 6, 6]


@pytest.mark.parametrize(
    ("labels", "classes", "size", "words"),
    [
        (TEN, 10, 300, "class 0 has 140 training samples but a device needs 300"),
        (TEN, 10, 61, "61 must be a multiple of 2"),
        (HUNDRED, 100, 200, "200 must be a multiple of 6"),
        (TEN % 7, 7, 60, "10 or 100 classes, this one has 7; use 'iid' or another one"),
        (np.delete(TEN, np.flatnonzero(TEN == 9)[:-20]), 10, 60, "class 9 has 20 training samples"),
    ],
)
def test_a_set_that_cannot_be_drawn_is_one_line(labels, classes, size, words):
    with pytest.raises(EdgesimError, match=words):
        FedTeddiPartition().divide(labels, classes, 30, size, Streams(0))
