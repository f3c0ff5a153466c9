import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.config import LearningConfig
from edgesim.config_file import parse
from edgesim.learning.batches import batch_samples, make_local_work, statistics_samples
from edgesim.learning.drift.frames import Framed
from edgesim.learning.drift.holdings import Frame
from edgesim.learning.federation import Federation
from edgesim.learning.knowledge import CountKnowledge
from edgesim.streams import Streams


def _federation(sizes):
    """Devices that hold consecutive, disjoint samples."""
    frame = Frame(np.array(sizes), np.zeros((len(sizes), 1), dtype=np.int64), np.array([0]), np.arange(sum(sizes)))
    return Federation(None, Framed([frame, frame]))


def _work(devices=800, seed=0, **learning):
    return make_local_work(LearningConfig(**learning), Streams(seed), devices)


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6), steps=st.integers(1, 4), seed=st.integers(0, 99))
def test_each_run_through_a_set_is_a_permutation_of_it(sizes, steps, seed):
    work = _work(steps=steps, batch_size=5)
    federation = _federation(sizes)
    drawn = batch_samples(federation.frames[1], Streams(seed), np.arange(len(sizes)), 3, work)
    for size, client, samples in zip(sizes, federation.frames[1].clients, drawn, strict=True):
        assert len(samples) == 5 * steps
        for start in range(0, 5 * steps, size):
            part = samples[start : start + size]
            assert len(np.unique(part)) == len(part)
            assert np.isin(part, client).all()


def test_batch_shares_equal_data_set_shares_when_samples_are_a_multiple_of_the_set(make_dataset, make_frames):
    dataset = make_dataset([0] * 20 + [1] * 12 + [2] * 16)
    federation = make_frames(dataset, [list(range(16)), list(range(16, 48))], [list(range(8, 24)), list(range(16, 48))])
    work = _work(steps=4, batch_size=8)
    known = CountKnowledge(federation, Streams(0), work, 7, federation.frames[1], federation.frames[0])
    every = np.arange(2)
    np.testing.assert_array_equal(known.class_counts(every, "batch"), known.class_counts(every, "dataset") * [[2], [1]])
    np.testing.assert_allclose(known.global_shares("batch"), known.global_shares("dataset"), atol=1e-15)
    assert known.previous_class_counts(every).tolist() == [[16, 0, 0], [4, 12, 16]]
    # Sizes 16 and 32: (12 of class 0, 4 of class 1) + (4, 12, 16), of 48.
    np.testing.assert_allclose(known.global_shares("dataset"), [16 / 48, 16 / 48, 16 / 48])


def test_batch_counts_are_those_of_the_job_that_trains(make_dataset, make_frames):
    dataset = make_dataset(np.arange(40) % 4)
    federation = make_frames(dataset, [list(range(30)), list(range(13, 40))], [list(range(30)), list(range(13, 40))])
    work = _work(steps=2, batch_size=8)
    streams = Streams(1)
    known = CountKnowledge(federation, streams, work, 2, federation.frames[1], federation.frames[0])
    for device in (0, 1):
        (samples,) = batch_samples(federation.frames[1], streams, np.array([device]), 2, work)
        expected = np.bincount(dataset.train_labels[samples], minlength=4)
        np.testing.assert_array_equal(known.class_counts(np.array([device]), "batch")[0], expected)


def test_a_devices_samples_depend_on_seed_device_and_round_alone():
    federation = _federation([7, 9, 7])
    work = _work(steps=3, batch_size=4)
    streams = Streams(5)
    together = batch_samples(federation.frames[1], streams, np.array([2, 0, 1]), 1, work)
    alone = batch_samples(federation.frames[1], streams, np.array([2]), 1, work)[0]
    np.testing.assert_array_equal(together[0], alone)
    next_round = batch_samples(federation.frames[1], streams, np.array([2]), 2, work)[0]
    assert alone.tolist() != next_round.tolist()


def test_by_epochs_the_last_batch_of_each_is_partial_and_by_steps_every_batch_is_whole():
    work = _work(epochs=2, batch_size=4)
    assert work.step_edges(0, 10).tolist() == [0, 4, 8, 10, 14, 18, 20]
    assert work.step_edges(0, 8).tolist() == [0, 4, 8, 12, 16]
    assert work.samples_per_job(np.arange(2), np.array([10, 8])).tolist() == [20, 16]
    (samples,) = batch_samples(_federation([10]).frames[1], Streams(0), np.array([0]), 1, work)
    assert sorted(samples[:10].tolist()) == sorted(samples[10:].tolist()) == list(range(10))
    work = _work(steps=3, batch_size=4)
    assert work.step_edges(0, 10).tolist() == [0, 4, 8, 12]
    assert work.samples_per_job(np.arange(2), np.array([10, 2])).tolist() == [12, 12]


@pytest.mark.parametrize(("size", "count"), [(20, 8), (5, 5)])
def test_a_statistics_batch_holds_distinct_samples_and_at_most_the_whole_set(size, count):
    work = _work(steps=1, batch_size=8)
    federation, streams = _federation([size]), Streams(0)
    (samples,) = statistics_samples(federation.frames[1], streams, np.array([0]), 1, work)
    assert len(np.unique(samples)) == len(samples) == count


def test_every_sample_is_equally_often_in_a_statistics_batch():
    work = _work(steps=1, batch_size=5)
    federation, streams = _federation([20] * 800), Streams(0)
    drawn = np.concatenate(statistics_samples(federation.frames[1], streams, np.arange(800), 1, work)) % 20
    counts = np.bincount(drawn, minlength=20)
    # 800 draws of chance 1/4: five standard deviations are 5 sqrt(800 * 3/16) = 61.
    assert np.abs(counts - 200).max() < 61


def test_epochs_and_batches_of_a_range_are_drawn_once_for_each_device_each_number_as_likely():
    work = _work(devices=6000, epochs=[3, 5], batch_size=[32, 64])
    for drawn, numbers in ((work.epochs, range(3, 6)), (work.batch, range(32, 65))):
        counts = np.bincount(drawn)
        assert np.flatnonzero(counts).tolist() == list(numbers)
        expected = 6000 / len(numbers)
        # Chi-squared of as many degrees of freedom, less one: its mean and four of its deviations.
        freedom = len(numbers) - 1
        assert ((counts[numbers] - expected) ** 2 / expected).sum() < freedom + 4 * np.sqrt(2 * freedom)
    assert abs(np.corrcoef(work.epochs, work.batch)[0, 1]) < 0.06
    few = _work(devices=30, epochs=[3, 5], batch_size=[32, 64])
    assert few.epochs.tolist() == work.epochs[:30].tolist()
    assert few.batch.tolist() == work.batch[:30].tolist()
    assert _work(devices=30, seed=1, batch_size=[32, 64], epochs=1).batch.tolist() != few.batch.tolist()


def test_a_devices_job_has_its_own_epochs_and_batches():
    work, federation = _work(devices=3, epochs=[1, 4], batch_size=[2, 6]), _federation([7, 7, 10])
    assert len({*zip(work.epochs.tolist(), work.batch.tolist(), strict=True)}) > 1
    drawn = batch_samples(federation.frames[1], Streams(0), np.arange(3), 1, work)
    for device, samples in enumerate(drawn):
        own, epochs, batch = federation.frames[1].clients[device], int(work.epochs[device]), int(work.batch[device])
        assert len(samples) == epochs * len(own) == work.samples_per_job(np.array([device]), np.array([len(own)]))[0]
        for epoch in np.split(samples, epochs):
            assert sorted(epoch.tolist()) == own.tolist()
        edges = work.step_edges(device, len(own))
        steps = np.diff(edges)
        assert edges[-1] == len(samples)
        assert steps.max() == min(batch, len(own))
        assert len(steps) == epochs * -(-len(own) // batch)


def test_a_device_of_one_size_that_draws_other_epochs_has_the_first_epochs_of_the_other():
    """Sets of one size are drawn together: the count of each is its own."""
    work, federation = _work(devices=40, epochs=[1, 3], batch_size=4), _federation([5] * 40)
    together = batch_samples(federation.frames[1], Streams(0), np.arange(40), 1, work)
    longest = batch_samples(
        federation.frames[1], Streams(0), np.arange(40), 1, _work(devices=40, epochs=3, batch_size=4)
    )
    for device in range(40):
        assert together[device].tolist() == longest[device][: 5 * work.epochs[device]].tolist()
    assert len({len(samples) for samples in together}) == 3


@pytest.mark.parametrize(
    ("learning", "said"),
    [
        ({"epochs": [5, 3]}, r"learning: epochs: the least number comes first \(got \[5, 3\]\)"),
        ({"batch_size": [64, 32]}, r"learning: batch_size: the least number comes first"),
        ({"epochs": [1, 2, 3]}, r"learning.epochs: list should have at most 2 items"),
        ({"epochs": [3]}, r"learning.epochs: list should have at least 2 items"),
        ({"epochs": "3-5"}, r"learning.epochs: input should be a valid integer or a valid list \(got '3-5'\)"),
        ({"epochs": [3, 5], "steps": 2}, r"learning\.steps = 2 does not go with learning\.epochs = \[3, 5\]"),
    ],
)
def test_a_bad_range_is_refused_in_one_line(learning, said):
    with pytest.raises(EdgesimError, match=said):
        parse({"learning": learning}, "test")
