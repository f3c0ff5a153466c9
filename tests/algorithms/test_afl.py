"""AFL's weights: the oracles T1 to T5 of its page, and the lengths of updates."""

import numpy as np
import pytest
import torch
from arriving import arrive
from quadratics import Play, Quadratic

from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.afl import Afl
from edgesim.learning.algorithms.records import Sizes
from edgesim.learning.norms import norm
from edgesim.streams import Streams


def arrivals(samples, norms, **fields):
    return arrive(samples=samples, norms=None if norms is None else np.array(norms, dtype=np.float64), **fields)


def afl(**options):
    return Afl.Server(Afl.Options(**options), Sizes(32.0, 1, 3), Streams(0))


def weights(samples, norms, **options):
    return afl(**options).weigh(arrivals(samples, norms))


MEDIAN = {"delta_norm": "median"}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("samples", "norms", "options", "raw"),
    [
        # T1: alpha = .25, 1/3, .1, which are .365854, .487805 and .146341 of their sum.
        ([100, 200, 100], [0, 1, 3], {"sensitivity": 0.5}, [1 / 4, 1 / 3, 1 / 10]),
        ([100, 200, 100], [0, 1, 3], {"sensitivity": 0.0}, [1, 2, 1]),
        # Of an even number the median is the mean of the middle two, 2.
        ([1, 1, 1, 1], [0, 1, 3, 6], {"sensitivity": 1.0} | MEDIAN, [1, 1 / 1.5, 1 / 2.5, 1 / 4]),
        # Where it is zero all lengths count alike.
        ([1, 2, 1], [0, 0, 0], {"sensitivity": 3.0} | MEDIAN, [1, 2, 1]),
        ([1, 2, 1], [0, 0, 7], {"sensitivity": 3.0} | MEDIAN, [1, 2, 1]),
        # T3: equal lengths make FedAvg, as no lengths do.
        ([1, 2, 5], [4, 4, 4], {"sensitivity": 0.7}, [1, 2, 5]),
        ([1, 2, 5], [4, 4, 4], {"sensitivity": 0.7} | MEDIAN, [1, 2, 5]),
        ([1, 2, 5], None, {"sensitivity": 9.0}, [1, 2, 5]),
        # T5, at the greatest lambda that a config may give and in lengths that make it 1e12.
        ([1, 1], [1e6, 2e6], {"sensitivity": 1e6}, [2, 1]),
        ([], [], MEDIAN, []),
    ],
)
def test_an_update_counts_the_less_the_longer_it_is(samples, norms, options, raw):
    assert weights(samples, norms, **options) == pytest.approx(np.array(raw) / sum(raw), rel=1e-11)


@pytest.mark.parametrize("delta_norm", ["none", "median"])
def test_only_lengths_in_medians_do_not_depend_on_the_scale_of_updates(delta_norm):
    """T2; both do not depend on that of the data sets."""
    norms, options = np.array([0.2, 1.0, 3.0, 0.7]), {"sensitivity": 0.5, "delta_norm": delta_norm}
    plain = weights([3, 1, 2, 5], norms, **options)
    assert weights([30, 10, 20, 50], norms, **options) == pytest.approx(plain, rel=1e-14)
    scaled = weights([3, 1, 2, 5], 50 * norms, **options)
    assert (np.abs(scaled - plain).max() < 1e-14) == (delta_norm == "median")


@pytest.mark.parametrize("delta_norm", ["none", "median"])
def test_a_longer_update_lowers_its_own_weight_alone(delta_norm):
    """T3; the median stays when the longest grows."""
    options = {"sensitivity": 0.7, "delta_norm": delta_norm}
    before, after = (weights([1, 2, 5], [1, 2, longest], **options) for longest in (3, 4))
    assert (after < before).tolist() == [False, False, True]
    assert (after > before).tolist() == [True, True, False]


def test_a_late_update_counts_less_by_its_age_as_well():
    """alpha = (1, .5 / 2) / 1.25."""
    found = afl(sensitivity=1.0).weigh(arrivals([1, 1], [0, 1], age_weight=np.array([1, 0.5])))
    assert found == pytest.approx([0.8, 0.2], rel=1e-15)


def test_metrics_tell_lambda_times_the_median_length_and_the_entropy_of_the_weights():
    """Entropy of T1's weights: -(.365854 ln .365854 + .487805 ln .487805 + .146341 ln .146341)."""
    algorithm, rows = afl(sensitivity=0.5), arrivals([100, 200, 100], [0, 1, 3])
    told = algorithm.report(None, rows)
    shares = np.array([15, 20, 6]) / 41
    assert told == {
        ("afl", "lambda_median_delta"): pytest.approx(0.5, rel=1e-15),
        ("afl", "weight_entropy"): pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-12),
    }
    assert algorithm.report(None, arrivals([], [])) == {}
    assert algorithm.report(None, arrivals([1], None)) == {}


def test_equal_local_models_are_the_global_one():
    """T4."""
    play = Play(ALGORITHMS["afl"], [Quadratic(1.0, samples=3), Quadratic(1.0, samples=9)], {"sensitivity": 2.0})
    alone = Play(ALGORITHMS["afl"], [Quadratic(1.0)], {"sensitivity": 2.0})
    assert play.round(0, 1) == pytest.approx(alone.round(0), abs=1e-15)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 2e-7), (torch.float64, 1e-15)])
@pytest.mark.parametrize("size", [1, 4095, 4096, 300_001])
def test_norms_are_exact_to_the_precision_of_the_numbers(dtype, error, size):
    vector = torch.randn(size, generator=torch.Generator().manual_seed(size), dtype=torch.float64).to(dtype)
    exact = np.sqrt(np.sum(vector.numpy().astype(np.longdouble) ** 2))
    assert norm(vector) == pytest.approx(float(exact), rel=error)
    assert norm(vector[:0]) == 0
