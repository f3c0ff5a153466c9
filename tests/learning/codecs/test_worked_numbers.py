"""Worked numbers: by the float64 reference within 1e-9, by the codecs within 1e-6."""

import math

import codec_reference as reference
import numpy as np
import pytest
import torch

from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.levels import elias
from edgesim.learning.codecs.places import WAYS, enumerative, rice
from edgesim.learning.codecs.transmission import charged_bits

X = [0.5, -0.3, 0.2, 0.4, 0.6, -0.1, -0.2, 0.3]
U = [0.9, 0.1, 0.7, 0.3, 0.5, 0.2, 0.6, 0.85]
V = [a + b for a, b in zip(X, [0.05, 0.25, -0.15, 0, -0.1, 0.12, -0.02, 0], strict=True)]
WHOLE = 2**31 - 1
"""A bucket that holds any vector."""


def coded(name, options, vector, uniforms=None):
    codec = make_codec(name, options)
    drawn = None if uniforms is None else torch.tensor(uniforms)
    return codec.coded(torch.tensor(vector), drawn, codec.setting(len(vector))).tolist()


def close(found, expected):
    return found == pytest.approx(expected, rel=0, abs=1e-6)


def exactly(expected):
    return pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("s", "norm", "size", "levels", "steps", "error", "variance", "bound", "bits", "sparse_bits"),
    [
        (1, "l2", 8, [1, -1, 0, 0, 1, 0, 0, 1], [1.0198039027], 1.7326667308, 1.6114901471, 2.9415642097, 48, 49),
        (3, "l2", 8, [2, -1, 1, 1, 2, -1, 0, 1], [0.3399346342], 0.1626797825, 0.1703006184, 0.9244444444, 56, 57),
        (7, "l2", 8, [4, -2, 2, 3, 4, -1, -1, 2], [0.1456862718], 0.0220528615, 0.0283088826, 0.1697959184, 64, 65),
        (7, "max", 8, [6, -4, 3, 4, 7, -1, -2, 4], [0.0857142857], 0.0114285714, 0.0106122449, 0.0146938776, 64, 65),
        (3, "max", 4, [3, -2, 1, 2, 3, -1, -1, 2], [0.5 / 3, 0.6 / 3], None, 0.0355555556, None, 88, 90),
    ],
)
def test_qsgd(s, norm, size, levels, steps, error, variance, bound, bits, sparse_bits):
    assert reference.stochastic_levels(X, U, s, norm, size) == levels
    assert [reference.scale_of(part, norm) / s for part in reference.buckets(X, size)] == exactly(steps)
    values = reference.level_values(X, levels, s, norm, size)
    assert reference.level_variance(X, s, norm, size) == exactly(variance)
    if error is not None:
        assert reference.squared_error(X, values) == exactly(error)
        lengths = min(8 / s**2, math.sqrt(8) / s) * reference.length(X) ** 2
        largest = 8 * max(map(abs, X)) ** 2 / (4 * s**2)
        assert (lengths if norm == "l2" else largest) == exactly(bound)
        assert variance <= bound

    codec = make_codec("qsgd", {"levels": s, "norm": norm, "bucket": size})
    found, scales = codec.quantised(torch.tensor(X), torch.tensor(U), s)
    assert found.tolist() == levels
    assert close(codec.coded(torch.tensor(X), torch.tensor(U), s).tolist(), values)
    assert codec.bits(8, s) == bits
    assert elias.size_bits(found, size, s) == sparse_bits == len(elias.write(found, scales, size, s))


def test_natural():
    values = [0.5, -0.25, 0.25, 0.25, 0.5, -0.0625, -0.25, 0.5]
    assert reference.natural(X, U) == values
    assert reference.natural_variance(X) == exactly(0.0834375)
    assert 0.0834375 <= reference.length(X) ** 2 / 8 == exactly(0.13)
    assert coded("natural", {}, X, U) == values
    assert make_codec("natural", {}).bits(8, 0) == 72


def test_random_k():
    values = [0, -0.8, 0, 1.0666666667, 0, -0.2666666667, 0, 0]
    assert reference.randk(X, U, 3, 8 / 3) == exactly(values)
    assert (8 / 3 - 1) * reference.length(X) ** 2 == exactly(1.7333333333)
    assert close(coded("randk", {"ratio": 0.375}, X, U), values)
    assert make_codec("randk", {"ratio": 0.375}).bits(8, 3) == 96
    assert reference.squared_error(V, reference.randk(V, U, 3, 1.0)) == exactly(0.6934)
    unscaled = make_codec("randk", {"ratio": 0.375}).for_feedback().coded(torch.tensor(V), torch.tensor(U), 3).tolist()
    assert np.flatnonzero(unscaled).tolist() == [1, 3, 5]
    assert close(reference.squared_error(V, unscaled), 0.6934)


def test_sparse_levels():
    levels = np.zeros(16, dtype=np.int64)
    levels[[3, 10]] = 1, -2
    assert elias.size_bits(levels, 16, 2) == 52
    assert make_codec("qsgd", {"levels": 2}).bits(16, 2) == 80


def test_sign():
    values = reference.sign(V)
    assert values == exactly(np.copysign(0.26125, V).tolist())
    error = reference.squared_error(V, values)
    assert error == exactly(0.3102875)
    assert 1 - error / reference.length(V) ** 2 == exactly(0.6376415976)
    assert close(coded("sign", {}, V), values)
    assert make_codec("sign", {}).bits(8, 0) == 40


def test_top_k():
    values = reference.topk(V, 3)
    left = [a - b for a, b in zip(V, values, strict=True)]
    assert left == exactly([0, -0.05, 0.05, 0, 0, 0.02, -0.22, 0.3])
    assert reference.squared_error(V, values) == exactly(0.1438)
    assert close(coded("topk", {"ratio": 0.375}, V), values)
    assert make_codec("topk", {"ratio": 0.375, "coding": "index"}).bits(8, 3) == 105
    tied = [0.3, -0.3, 0.3, 0.1]
    assert reference.topk(tied, 2) == [0.3, -0.3, 0, 0]
    assert close(coded("topk", {"ratio": 0.5}, tied), [0.3, -0.3, 0, 0])


def test_one_sided():
    """Of the 5 largest of V = (.55, -.05, .05, .4, .5, .02, -.22, .3), -.22 is alone; the others' mean is .4375."""
    options = {"ratio": 0.5, "values": "one-sided", "coding": "enumerative"}
    for sign in (1, -1):
        values = reference.one_sided([sign * number for number in V], 5)
        assert values == exactly([sign * 0.4375 if place in (0, 3, 4, 7) else 0.0 for place in range(8)])
        assert close(coded("topk", options | {"ratio": 0.625}, [sign * number for number in V]), values)
    # Of .3 and -.3, .2: the mean of the positive ones, .25, is smaller; where both are equal, they win.
    assert close(coded("topk", options | {"ratio": 0.6}, [0.3, -0.3, 0.2, 0.1, 0.0]), [0, -0.3, 0, 0, 0])
    assert close(coded("topk", options | {"ratio": 0.4}, [0.3, -0.3, 0.2, 0.1, 0.0]), [0.3, 0, 0, 0, 0])
    codec = make_codec("topk", options)
    assert codec.bits(650, 7) == 87
    assert codec.bits(558_802, 5_589) == 45_180
    # C(650, 7) = 9.4e15 < 2^54: beside 33 bits, 54 take 7 numbers and 53 but 6.
    assert [codec.largest(650, bits) for bits in (86, 87)] == [6, 7]


def test_stc():
    values = reference.stc(V, 3)
    assert [abs(number) for number in values if number] == exactly([0.4833333333] * 3)
    assert reference.squared_error(V, values) == exactly(0.1554666667)
    assert close(coded("stc", {"ratio": 0.375}, V), values)
    assert make_codec("stc", {"ratio": 0.375, "coding": "index"}).bits(8, 3) == 44
    assert make_codec("stc", {"ratio": 0.375, "coding": "rice"}).bits(8, 3) == 43


CHARGED = [
    ("none", {}), ("qsgd", {"levels": 1, "bucket": WHOLE}), ("qsgd", {"levels": 7, "bucket": WHOLE}),
    ("qsgd", {"levels": 127, "bucket": WHOLE}), ("qsgd", {"levels": 7, "bucket": 512}), ("natural", {}), ("sign", {}),
    ("topk", {"coding": "index"}), ("topk", {"coding": "rice"}), ("topk", {"coding": "enumerative"}),
    ("stc", {"coding": "rice"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("d", "bits", "k"),
    [
        (2_410, [77120, 4852, 9672, 19312, 9800, 21690, 2442, 1100, 1012, 998, 269], 25),
        (
            558_802,
            [17881664, 1117636, 2235240, 4470448, 2270152, 5029218, 558834, 290628, 226614, 223995, 53387],
            5_589,
        ),
        (
            4_903_242,
            [156903744, 9806516, 19613000, 39225968, 19919432, 44129178, 4903274, 2696815, 1988134, 1965200, 468143],
            49_033,
        ),
    ],
)
def test_bits_of_models(d, bits, k):
    assert [charged_bits(make_codec(name, options), d) for name, options in CHARGED] == bits
    assert make_codec("topk", {}).setting(d) == k
    assert make_codec("half", {}).bits(d, 0) == 16 * d


def test_bits_of_sets_of_places():
    assert rice.parameter(2_410, 25) == 6
    assert enumerative.size_bits(650, 7) + 33 == 87
    assert enumerative.size_bits(558_802, 5_589) + 33 == pytest.approx(223_995 - 32 * 5_589 + 33)
    assert [enumerative.size_bits(558_802, 5_589), WAYS["bitmap"].size_bits(9, 3)] == [45_147, 9]
