from collections import Counter

import numpy as np
import pytest
from candidates import PlainKnowledge, schedule, view_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgesim.selection.fed_cbs import FedCbs, FedCbsOptions, first_weights, later_weights, qcid_with_each

FOUR_MIXES = np.array([[90, 10], [20, 80], [80, 20], [30, 70]])


def assert_frequencies(seen, probabilities, name):
    total = sum(seen.values())
    for device, exact in enumerate(probabilities):
        error = np.sqrt(total * exact * (1 - exact))
        assert abs(seen[device] - total * exact) <= 4 * error + 1e-9, (name, device, seen, total * exact)


def test_imbalance_of_pooled_mixes_has_the_worked_values():
    """Oracle T9 of the specification: sizes 100, 100, 200 and mixes a, b, half and half."""
    counts = np.array([[100, 0], [0, 100], [100, 100]])
    assert qcid_with_each(counts, np.zeros(2, dtype=int)) == pytest.approx([0.5, 0.5, 0.0], abs=1e-15)
    assert qcid_with_each(counts, counts[0])[1:] == pytest.approx([0.0, 0.0555556], abs=5e-8)


@given(arrays(np.int64, (5, 4), elements=st.integers(1, 60)), st.sets(st.integers(0, 3), max_size=4))
def test_imbalance_equals_the_paper_s_pairwise_matrix_form(counts, members):
    """QCID(S) = sum_{i,j in S} D_i D_j p_i.p_j / (sum_S D)^2 - 1/C."""
    members = sorted(members)
    chosen = counts[[*members, 4]]
    sizes = chosen.sum(axis=1)
    mixes = chosen / sizes[:, None]
    pairwise = np.outer(sizes, sizes) * (mixes @ mixes.T)
    direct = qcid_with_each(counts, counts[members].sum(axis=0))[4]
    assert direct == pytest.approx(pairwise.sum() / sizes.sum() ** 2 - 1 / 4, abs=1e-12)


def test_second_picks_have_the_worked_probabilities():
    """Oracle T9: after device 0, QCID .005, .245, .02 give .940808, .000392, .058800."""
    qcid = qcid_with_each(FOUR_MIXES, FOUR_MIXES[0])[1:]
    assert qcid == pytest.approx([0.005, 0.245, 0.02])
    weights = later_weights(qcid, place=2)
    assert weights / weights.sum() == pytest.approx([0.940808, 0.000392, 0.058800], abs=1e-6)


def test_a_late_place_on_a_balanced_set_has_finite_weights():
    weights = later_weights(np.array([0.0, 1e-6, 2e-6, np.inf]), place=400)
    assert weights == pytest.approx([1.0, 1.0, 2.0**-400, 0.0], rel=1e-9, abs=0)


def test_picks_are_as_frequent_as_their_probabilities():
    """First draw prop. to 1/QCID + 10 sqrt(3 ln k / 2 T); second, after device 0, as in oracle T9."""
    knowledge, policy = PlainKnowledge(FOUR_MIXES), FedCbs(FedCbsOptions(), 4, 2)
    times = np.array([0, 1, 4, 25])
    first, second = Counter(), Counter()
    for seed in range(700):
        view = view_of(knowledge, round=7, times_selected=times, seed=seed)
        taken = schedule(policy.choose(view), view, band_hz=2.0)[1]
        first[taken[0]] += 1
        if taken[0] == 0:
            second[taken[1]] += 1
    explore = [10 * np.sqrt(3 * np.log(7) / (2 * t)) for t in (1, 1, 4, 25)]
    weights = np.array([1 / 0.32, 1 / 0.18, 1 / 0.18, 1 / 0.08]) + explore
    qcid = qcid_with_each(FOUR_MIXES, np.zeros(2, dtype=int))
    assert first_weights(qcid, times, 7, 10.0) == pytest.approx(weights)
    assert_frequencies(first, weights / weights.sum(), "first")
    assert_frequencies(second, [0.0, 0.940808, 0.000392, 0.058800], "second")


def test_a_refused_device_is_struck_out_and_its_place_drawn_again():
    """With device 1 too wide for the band, second picks after 0 keep the ratio QCID^-2 of the other two."""
    knowledge, policy = PlainKnowledge(FOUR_MIXES), FedCbs(FedCbsOptions(kappa=0.0), 4, 2)
    second = Counter()
    for seed in range(700):
        view = view_of(knowledge, need_hz=[1.0, 9.0, 1.0, 1.0], seed=seed)
        offered, taken = schedule(policy.choose(view), view, band_hz=2.0)
        assert sorted(offered) == [0, 1, 2, 3]
        assert 1 not in taken
        if taken[0] == 0:
            second[taken[1]] += 1
    ratio = np.array([0.0, 0.0, 0.245**-2, 0.02**-2])
    assert_frequencies(second, ratio / ratio.sum(), "second")


def test_in_the_first_round_nothing_is_explored():
    """ln 1 = 0."""
    assert first_weights(np.array([0.5, 0.0]), np.array([0, 3]), round=1, kappa=10.0).tolist() == [2.0, 1e6]


def test_classes_that_nobody_holds_do_not_spoil_the_uniform_target():
    policy = FedCbs(FedCbsOptions(), 4, 5)
    for seed in range(50):
        padded = view_of(PlainKnowledge(np.pad(FOUR_MIXES, ((0, 0), (1, 2)))), seed=seed)
        plain = view_of(PlainKnowledge(FOUR_MIXES), seed=seed)
        assert list(policy.choose(padded)) == list(policy.choose(plain))
