"""Properties of all laws that deal out a training set, and each law against what its source says of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import in_one_line
from scipy import stats

from edgesim.base.errors import EdgesimError
from edgesim.learning.partitions.classes import Classes
from edgesim.learning.partitions.dirichlet import Dirichlet
from edgesim.learning.partitions.dirichlet_labels import DirichletLabels
from edgesim.learning.partitions.iid import Iid
from edgesim.learning.partitions.quantity import Quantity
from edgesim.learning.partitions.shards import Shards
from edgesim.streams import Streams

MNIST, SMALL = np.tile(np.arange(10), 6000), np.tile(np.arange(10), 1000)


def counts_of(parts, labels, class_count=10):
    return np.array([np.bincount(labels[part], minlength=class_count) for part in parts])


@given(total=st.integers(5, 60), devices=st.integers(1, 40), size=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_parts_are_equal_never_repeat_a_sample_and_overlap_only_when_they_must(total, devices, size, seed):
    (parts,) = Iid().divide(np.zeros(total, dtype=np.int64), 1, devices, size, Streams(seed))
    assert [len(np.unique(part)) for part in parts] == [size] * devices
    disjoint = min(devices, total // size)
    assert len(np.unique(np.concatenate(parts[:disjoint]))) == disjoint * size


def test_what_is_dealt_a_second_time_is_dealt_otherwise():
    (parts,) = Iid().divide(np.zeros(40, dtype=np.int64), 1, 8, 10, Streams(0))
    assert sorted(np.concatenate(parts[:4])) == sorted(np.concatenate(parts[4:])) == list(range(40))
    assert not {tuple(part) for part in parts[:4]} & {tuple(part) for part in parts[4:]}


def test_a_devices_share_of_a_class_follows_the_beta_law_of_a_dirichlet_share():
    # One component of Dir_5(0.8, ..., 0.8) is Beta(0.8, 3.2); device 0, ten independent classes, 60 seeds.
    shares = [
        counts_of(Dirichlet(alpha=0.8).divide(SMALL, 10, 5, None, Streams(seed))[0], SMALL)[0] / 1000
        for seed in range(60)
    ]
    assert stats.kstest(np.concatenate(shares), stats.beta(0.8, 3.2).cdf).pvalue > 0.01


def test_oracle_t10_of_dpfl_kpfl_heavy_skew_gives_most_of_a_class_to_one_device():
    """Ten devices: at alpha 100 nobody holds a fifth of a class, at alpha .1 the median top share is above half.

    Of 100 classes; NumPy's own law says .655 for that median.
    """
    draws = {alpha: [Dirichlet(alpha=alpha).divide(MNIST, 10, 10, None, Streams(seed))[0] for seed in range(10)]
             for alpha in (0.1, 100.0)}  # fmt: skip
    counts = {alpha: np.stack([counts_of(parts, MNIST) for parts in found]) for alpha, found in draws.items()}
    for found in counts.values():
        assert (found.sum(axis=1) == 6000).all()
        assert (found <= 6000).all()
    tops = {alpha: found.max(axis=1) / 6000 for alpha, found in counts.items()}
    assert tops[100.0].max() < 0.2
    assert np.median(tops[0.1]) > 0.5
    assert np.median(tops[0.1]) == pytest.approx(0.655, abs=0.08)


@pytest.mark.slow
def test_a_devices_size_under_quantity_skew_follows_the_beta_law_and_its_mix_is_the_global_one():
    parts = [Quantity(alpha=0.8).divide(SMALL, 10, 5, None, Streams(seed))[0] for seed in range(200)]
    sizes = np.array([len(clients[0]) for clients in parts])
    assert stats.kstest(sizes / 10000, stats.beta(0.8, 3.2).cdf).pvalue > 0.01
    largest = counts_of([max(parts[0], key=len)], SMALL)[0]
    assert stats.chisquare(largest).pvalue > 0.01


def test_a_huge_alpha_deals_equally_and_a_tiny_one_gives_a_class_to_one_device():
    even = counts_of(Dirichlet(alpha=1e6).divide(MNIST, 10, 8, None, Streams(0))[0], MNIST)
    assert np.abs(even - 750).max() <= 10  # standard deviation of a share: 0.94 samples
    skewed = counts_of(Dirichlet(alpha=1e-3).divide(MNIST, 10, 8, None, Streams(0))[0], MNIST)
    assert (skewed.max(axis=0) > 5900).sum() >= 9


def test_a_label_share_of_a_device_follows_the_beta_law():
    (parts,) = DirichletLabels(alpha=0.5).divide(MNIST, 10, 400, 2000, Streams(0))
    # The floor shifts a count by half a sample in the mean; shares below one sample are lost.
    shares = (counts_of(parts, MNIST)[:, 3] + 0.5) / 2000
    beta = stats.beta(0.5, 4.5)
    assert np.mean(shares < 1e-3) == pytest.approx(beta.cdf(5e-4), abs=0.03)
    assert stats.kstest(shares[shares > 1e-3], lambda x: (beta.cdf(x) - beta.cdf(5e-4)) / beta.sf(5e-4)).pvalue > 0.01


def test_the_ramp_of_feddances_program_gives_the_sizes_of_its_published_maps():
    # feddance.md, section 6: 42 to 49 images per device, 45.1 in the mean, 29.8k distinct of CIFAR-10's 50k.
    cifar = np.tile(np.arange(10), 5000)
    (parts,) = DirichletLabels(alpha=[[0.1, 2.6], [130.6, 211.1]]).divide(cifar, 10, 1000, None, Streams(0))
    sizes = np.array([len(part) for part in parts])
    assert sizes.max() <= 49
    assert sizes.min() >= 41
    assert sizes.mean() == pytest.approx(45.1, abs=0.1)
    assert len(np.unique(np.concatenate(parts))) == pytest.approx(29_800, rel=0.005)
    held = (counts_of(parts, cifar) > 0).sum(axis=1)
    assert held[:50].mean() < 6 < 9.9 < held[500:].mean()


def test_tiny_imagenets_devices_hold_fifty_labels_at_most():
    tiny = np.tile(np.arange(200), 500)
    (parts,) = DirichletLabels(alpha=100.0, labels_per_device=50).divide(tiny, 200, 20, 4000, Streams(0))
    counts = counts_of(parts, tiny, 200)
    assert (counts > 0).sum(axis=1).tolist() == [50] * 20
    assert (counts > 0).any(axis=0).sum() > 190


def test_more_devices_leave_the_sets_of_the_first_ones_as_they_are():
    few, many = (DirichletLabels().divide(MNIST, 10, count, 40, Streams(7))[0] for count in (5, 50))
    assert [part.tolist() for part in few] == [part.tolist() for part in many[:5]]


@given(devices=st.integers(1, 60), k=st.integers(1, 10), size=st.none() | st.just(30), seed=st.integers(0, 2**32))
def test_each_device_holds_k_classes_and_those_who_share_a_class_share_it_equally(devices, k, size, seed):
    labels = np.tile(np.arange(10), 300)
    try:
        (parts,) = Classes(classes_per_device=k).divide(labels, 10, devices, size, Streams(seed))
    except EdgesimError:
        assert size == 30
        assert devices < 5  # a pool of a few dozen may lack a class
        return
    counts = counts_of(parts, labels)
    assert ((counts > 0).sum(axis=1) == k).all()
    assert (counts[np.arange(devices), np.arange(devices) % 10] > 0).all()
    for column in counts.T:
        shared = column[column > 0]
        assert len(shared) == 0 or np.ptp(shared) <= 1
    dealt = np.concatenate(parts)
    assert len(np.unique(dealt)) == len(dealt)
    if size is None:
        assert counts.sum() == 300 * counts.any(axis=0).sum()


def test_the_pathological_mnist_of_mcmahan_has_two_digits_and_600_examples_per_client():
    (parts,) = Shards().divide(MNIST, 10, 100, None, Streams(0))
    counts = counts_of(parts, MNIST)
    assert (counts.sum(axis=1) == 600).all()
    assert set((counts > 0).sum(axis=1).tolist()) == {1, 2}
    assert set(counts[counts > 0].tolist()) == {300, 600}


@pytest.mark.parametrize(
    ("law", "devices", "size", "words"),
    [
        (Dirichlet(), 61, None, "61 devices are more than the 60 training samples, and each needs one; lower it"),
        (Quantity(), 61, 9, "61 devices are more than the 60 training samples"),
        (Quantity(), 7, 9, "9 for each of 7 devices are more than the 60 training samples; lower it to 8 or"),
        (Shards(), 31, None, "shards_per_device: 2 for each of 31 devices are more shards than the 60 training"),
        (Classes(classes_per_device=5), 9, None, "classes_per_device: 5 is more than the 3 classes"),
        (Classes(classes_per_device=3), 21, None, "21 devices would share the 20 training samples of class 0"),
        (DirichletLabels(), 61, None, "61 devices are more than the 60 training samples; lower it or give"),
        (DirichletLabels(labels_per_device=4), 6, None, "labels_per_device: 4 is more than the 3 classes"),
        (Iid(), 3, 61, "61 is more than the 60 training samples"),
    ],
)
def test_too_few_samples_are_one_line(law, devices, size, words):
    labels = np.tile(np.arange(3), 20)
    with in_one_line(words):
        law.divide(labels, 3, devices, size, Streams(0))
