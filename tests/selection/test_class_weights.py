import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.class_weights import ClassWeights, gradient_ratios
from edgesim.selection.view import ClassGradients

TWO_CLIENTS = ClassGradients(
    # Class gradients (3, 4) and (0, 2), norms 5 and 2, times |p_n - p| = .375 for both devices and classes.
    distances=np.array([[1.875, 0.75], [1.875, 0.75]]),
    shares=np.array([[1.0, 0.0], [0.25, 0.75]]),
    global_shares=np.array([0.625, 0.375]),
)


def found(distances, shares, global_shares):
    return ClassGradients(*(np.array(value, dtype=float) for value in (distances, shares, global_shares)))


def test_the_literal_estimate_is_half_the_true_norm_and_the_scalar_one_exact():
    """Oracle T8 of the specification."""
    assert gradient_ratios(TWO_CLIENTS, "eq18") == pytest.approx([2.5, 1.0])
    assert gradient_ratios(TWO_CLIENTS, "lastlayer") == pytest.approx([2.5, 1.0])
    assert gradient_ratios(TWO_CLIENTS, "scalar") == pytest.approx([5.0, 2.0])


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any), min_size=2, max_size=5),
    st.lists(st.floats(0.125, 100), min_size=3, max_size=3),
)
def test_with_equal_features_eq_18_never_exceeds_half_the_true_norm(counts, norms):
    """sum_c (p_n^c - p^c) = 0, so ||p_n - p||_1 >= 2 |p_n^c - p^c|."""
    shares = np.array(counts) / np.sum(counts, axis=1, keepdims=True)
    mean = shares.mean(axis=0)
    gradients = ClassGradients(np.abs(shares - mean) * norms, shares, mean)
    literal, scalar = gradient_ratios(gradients, "eq18"), gradient_ratios(gradients, "scalar")
    assert np.all(literal <= np.array(norms) / 2 * (1 + 1e-9))
    told = np.isfinite(scalar)
    assert scalar[told] == pytest.approx(np.array(norms)[told])


def test_a_device_with_the_global_mix_is_left_out_of_the_maximum():
    gradients = found([[9.0, 9.0], [0.5, 0.25]], [[0.5, 0.5], [1.0, 0.0]], [0.5, 0.5])
    assert gradient_ratios(gradients, "eq18").tolist() == [0.5, 0.25]
    assert gradient_ratios(gradients, "scalar").tolist() == [1.0, 0.5]


def test_when_no_device_can_tell_the_previous_weights_stay():
    weights = ClassWeights.unknown(2)
    weights.learn(TWO_CLIENTS, "eq18")
    weights.learn(found([[3.0, 3.0]], [[0.5, 0.5]], [0.5, 0.5]), "eq18")
    assert weights.value == pytest.approx([2.5, 1.0])


def test_a_class_in_nobody_s_batch_keeps_its_value():
    weights = ClassWeights(np.array([4.0, 7.0, 1.0]), np.array([True, True, False]))
    weights.learn(found([[0.6, 0.0, 0.0]], [[0.4, 0.0, 0.6]], [0.1, 0.0, 0.9]), "eq18")
    assert weights.value == pytest.approx([1.0, 7.0, 0.0])
    assert weights.known.tolist() == [True, True, True]


def test_an_estimate_replaces_the_one_before_even_when_it_is_smaller():
    weights = ClassWeights(np.array([40.0, 70.0]), np.array([True, True]))
    weights.learn(TWO_CLIENTS, "scalar")
    assert weights.value == pytest.approx([5.0, 2.0])


def test_unknown_classes_weigh_one_in_the_first_frame_and_the_known_mean_later():
    weights = ClassWeights.unknown(4)
    assert weights.current(frame=2).tolist() == [1.0, 1.0, 1.0, 1.0]
    weights.learn(found([[2.0, 6.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], [0.5, 0.5, 0.0, 0.0]), "eq18")
    assert weights.current(frame=1).tolist() == [2.0, 6.0, 1.0, 1.0]
    assert weights.current(frame=2).tolist() == [2.0, 6.0, 4.0, 4.0]
