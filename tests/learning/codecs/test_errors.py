"""Errors of codecs: right in the mean, as large as the closed forms say, and within their bounds."""

import math

import codec_reference as reference
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.half import LARGEST

X = [0.5, -0.3, 0.2, 0.4, 0.6, -0.1, -0.2, 0.3]
DRAWS = 40_000
VECTORS = arrays(
    np.float32,
    st.integers(1, 60),
    elements=st.floats(-100, 100, width=32).map(lambda number: number if abs(number) > 1e-30 else 0.0),
)


def uniforms(count, seed=0):
    words = np.random.default_rng(seed).integers(0, 2**23, count)
    return torch.from_numpy(((words + 0.5) * 2.0**-23).astype(np.float32))


def error(found, vector):
    return float(((found.double() - vector.double()) ** 2).sum())


@pytest.mark.parametrize(
    ("name", "options", "variance"),
    [
        ("qsgd", {"levels": 1, "bucket": 8, "norm": "l2"}, reference.level_variance(X, 1, "l2", 8)),
        ("qsgd", {"levels": 7, "bucket": 8, "norm": "l2"}, reference.level_variance(X, 7, "l2", 8)),
        ("qsgd", {"levels": 3, "bucket": 4}, reference.level_variance(X, 3, "max", 4)),
        ("natural", {}, reference.natural_variance(X)),
    ],
)
def test_unbiased_codecs_are_right_in_the_mean_with_the_error_of_the_closed_form(name, options, variance):
    """40,000 draws within 3 standard errors; buckets and numbers of one long vector are drawn apart."""
    codec, drawn, vector = make_codec(name, options), uniforms(8 * DRAWS, seed=1), torch.tensor(X)
    found = codec.coded(vector.repeat(DRAWS), drawn, codec.setting(8)).view(DRAWS, 8)
    found, exact, root = found.double(), vector.double(), math.sqrt(len(found))
    assert bool(((found.mean(0) - exact).abs() <= 3 * found.std(0) / root + 1e-7).all())
    squares = ((found - exact) ** 2).sum(1)
    assert abs(float(squares.mean()) - variance) <= 3 * float(squares.std()) / root + 1e-7


@given(VECTORS, st.sampled_from([1, 2, 7, 127, 32_767]), st.sampled_from(["max", "l2"]), st.sampled_from([2, 8, 512]))
def test_levels_are_a_step_away_at_most_and_variances_within_their_bounds(vector, s, norm, bucket):
    x, d = vector.tolist(), len(vector)
    codec = make_codec("qsgd", {"levels": s, "norm": norm, "bucket": bucket})
    found = codec.coded(torch.from_numpy(vector), uniforms(d), s).tolist()
    bound = 0.0
    for part, own in zip(reference.buckets(x, bucket), reference.buckets(found, bucket), strict=True):
        scale, q, length = reference.scale_of(part, norm), len(part), reference.length(part)
        # Roundings of float32 come on top: of the scale, and of a number between the levels.
        assert all(abs(a - b) <= scale / s + 4e-7 * scale for a, b in zip(part, own, strict=True))
        of_l2 = min(q / s**2, math.sqrt(q) / s) * length**2
        bound += min(of_l2, q * scale**2 / (4 * s**2)) if norm == "l2" else q * scale**2 / (4 * s**2)
    assert reference.level_variance(x, s, norm, bucket) <= bound * (1 + 1e-9)


@given(VECTORS, st.sampled_from([1, 3, 127]), st.sampled_from([2, 5, 512]))
def test_nearest_levels_contract(vector, s, bucket):
    codec = make_codec("qsgd", {"levels": s, "rounding": "nearest", "bucket": bucket})
    found = codec.coded(torch.from_numpy(vector), None, s)
    for part, own in zip(torch.from_numpy(vector).split(bucket), found.split(bucket), strict=True):
        squares = float((part.double() ** 2).sum())
        assert error(own, part) <= (1 - 1 / len(part)) * squares + 1e-6 * squares


@given(VECTORS)
def test_natural_numbers_are_the_two_powers_around_and_vary_by_an_eighth_at_most(vector):
    found = make_codec("natural", {}).coded(torch.from_numpy(vector), uniforms(len(vector)), 0).tolist()
    assert found == reference.natural(vector.tolist(), uniforms(len(vector)).tolist())
    x = vector.tolist()
    assert reference.natural_variance(x) <= reference.length(x) ** 2 / 8 * (1 + 1e-12)


@given(VECTORS, st.floats(0.01, 1))
def test_contractions_are_those_of_the_reference_with_errors_of_the_closed_forms(vector, ratio):
    x, d, tensor = vector.tolist(), len(vector), torch.from_numpy(vector)
    squares = reference.length(x) ** 2
    sizes = math.fsum(map(abs, x))
    near = {"rel": 1e-5, "abs": 1e-6 * squares + 1e-30}
    codec = make_codec("sign", {})
    found = codec.coded(tensor, None, 0)
    assert found.tolist() == pytest.approx(reference.sign(x), rel=1e-6)
    assert error(found, tensor) == pytest.approx(squares - sizes**2 / d, **near)

    codec = make_codec("topk", {"ratio": ratio})
    k = codec.setting(d)
    found = codec.coded(tensor, None, k)
    assert found.tolist() == reference.topk(x, k)
    assert error(found, tensor) <= (1 - k / d) * squares * (1 + 1e-9)

    found = make_codec("stc", {"ratio": ratio}).coded(tensor, None, k)
    assert found.tolist() == pytest.approx(reference.stc(x, k), rel=1e-6)
    mean = math.fsum(abs(x[place]) for place in reference.top(x, k)) / k
    assert error(found, tensor) == pytest.approx(squares - k * mean**2, **near)


@given(VECTORS)
def test_random_numbers_are_those_of_the_k_least_uniforms(vector):
    """With many equal uniforms, of which the lower places come first."""
    d, tensor = len(vector), torch.from_numpy(vector)
    drawn = ((uniforms(d) * 4).floor() + 0.5) / 4
    codec = make_codec("randk", {"ratio": 0.3})
    k = codec.setting(d)
    expected = reference.randk(vector.tolist(), drawn.tolist(), k, d / k)
    assert codec.coded(tensor, drawn, k).tolist() == pytest.approx(expected, rel=1e-6)
    unscaled = codec.for_feedback().coded(tensor, drawn, k)
    assert unscaled.tolist() == reference.randk(vector.tolist(), drawn.tolist(), k, 1)


@given(arrays(np.float32, st.integers(1, 60), elements=st.floats(-1e5, 1e5, width=32)))
def test_halves_are_within_2048ths_or_2_to_the_minus_25(vector):
    found = make_codec("half", {}).coded(torch.from_numpy(vector), None, 0).double().numpy()
    clamped = np.clip(vector.astype(np.float64), -LARGEST, LARGEST)
    assert bool((np.abs(found - clamped) <= np.maximum(2.0**-11 * np.abs(clamped), 2.0**-25)).all())
    with np.errstate(over="ignore"):
        assert np.array_equal(found, np.clip(vector, -LARGEST, LARGEST).astype(np.float16).astype(np.float64))


def test_all_numbers_kept_are_no_codec_for_topk_and_randk_and_one_for_stc_and_sign():
    vector = torch.randn(50, generator=torch.Generator().manual_seed(0))
    for name in ("topk", "randk"):
        assert torch.equal(make_codec(name, {"ratio": 1.0}).coded(vector, uniforms(50), 50), vector)
    assert torch.equal(make_codec("none", {}).coded(vector, None, 0), vector)
    for name in ("stc", "sign"):
        codec = make_codec(name, {"ratio": 1.0} if name == "stc" else {})
        assert not torch.allclose(codec.coded(vector, None, 50), vector)
        one = torch.tensor([-0.7])
        assert torch.equal(codec.coded(one, None, 1), one)


def test_a_level_beyond_the_last_is_the_last():
    """127 and a uniform next to 1 round to 128 in float32."""
    vector, drawn = torch.tensor([1.0, -1.0]), torch.full((2,), 1 - 2.0**-24)
    assert float(torch.tensor(127.0) + drawn[0]) == 128
    for norm in ("max", "l2"):
        levels, _ = make_codec("qsgd", {"levels": 127, "norm": norm}).quantised(vector, drawn, 127)
        assert int(np.abs(levels).max()) <= 127
    assert make_codec("qsgd", {"levels": 127}).coded(vector, drawn, 127)[0] == 1.0


def test_the_sign_of_zero_is_positive():
    vector = torch.tensor([-0.0, 0.0, -6.0])
    assert make_codec("sign", {}).coded(vector, None, 0).tolist() == [2.0, 2.0, -2.0]
    assert make_codec("stc", {"ratio": 1.0}).coded(vector, None, 3).tolist() == [2.0, 2.0, -2.0]


def test_natural_numbers_never_leave_float32():
    largest = torch.tensor([torch.finfo(torch.float32).max, -torch.finfo(torch.float32).max])
    assert make_codec("natural", {}).coded(largest, uniforms(2), 0).tolist() == [2.0**127, -(2.0**127)]
    drawn = torch.tensor([0.5 * 2.0**-23] * 2)
    assert make_codec("natural", {}).coded(torch.tensor([3e-39, 0.0]), drawn, 0).tolist() == [0.0, 0.0]


def test_zeros_stay_zero_whatever_is_drawn():
    vector, drawn = torch.zeros(40), uniforms(40)
    for name in ("qsgd", "natural", "sign", "topk", "stc", "randk", "half", "none"):
        codec = make_codec(name, {})
        assert float(codec.coded(vector, drawn if codec.draws else None, codec.setting(40)).abs().max()) == 0
