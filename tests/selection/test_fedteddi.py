from types import SimpleNamespace

import numpy as np
import pytest
from candidates import PlainKnowledge, report_of, schedule, view_of

from edgesim.selection.fedcgd import FedCgd
from edgesim.selection.fedteddi import FedTeddi, FedTeddiOptions, GreedyOptions, drift_weight
from edgesim.selection.greedy import add, cost_with_each, empty_sums, objective_terms
from edgesim.selection.shares import class_shares, share_changes
from edgesim.selection.view import ClassGradients

NEED_HZ = [5.0, 5.0, 5.0, 12.0]


@pytest.fixture
def four_clients():
    """FedTeddi's worked example: mixes a, b, half a half b, half b half c; only client 3's mix changed."""
    return PlainKnowledge(
        counts=np.array([[100, 0, 0], [0, 100, 0], [100, 100, 0], [0, 50, 50]]),
        previous=np.array([[100, 0, 0], [0, 100, 0], [100, 100, 0], [0, 100, 0]]),
        batches=np.array([[16, 0, 0], [0, 16, 0], [8, 8, 0], [0, 8, 8]]),
        deviation=np.full(4, 4.0),
    )


def fedteddi(**options):
    policy = FedTeddi(FedTeddiOptions(**options), 4, 3)
    policy.state.value = np.array([1.0, 1.0, 2.0])
    return policy


def report(arrived, answer=None):
    """A finished round; asking for gradients without an ``answer`` fails."""
    asked = []

    def class_gradient_distances(ids, part):
        asked.append((ids.tolist(), part))
        return answer

    gradients = SimpleNamespace(class_gradient_distances=class_gradient_distances)
    return report_of(checked_in=range(4), selected=arrived, gradients=gradients), asked


GRADIENTS = ClassGradients(
    distances=np.array([[1.875, 0.75, 0.0], [1.875, 0.75, 0.0]]),
    shares=np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0]]),
    global_shares=np.array([0.625, 0.375, 0.0]),
)


@pytest.mark.parametrize(("lambda_0", "k", "order"), [(4.0, 1, [3]), (2.0, 1, [3, 2]), (4.0, 2, [2, 3, 0, 1])])
def test_the_whole_policy_takes_the_worked_sets(lambda_0, k, order, four_clients):
    """Oracle T4 with lambda 2, 1 and 0, reached as lambda_0 (1 - k / 2); sigma is 4, b is 16."""
    view = view_of(four_clients, round_in_frame=k)
    assert schedule(fedteddi(lambda_0=lambda_0).choose(view), view)[1] == order


@pytest.mark.parametrize(("on_bw_fail", "taken"), [("skip", [2, 1]), ("stop", [])])
def test_the_whole_policy_answers_a_narrow_band_as_told(on_bw_fail, taken, four_clients):
    """Oracle T5."""
    view = view_of(four_clients, need_hz=NEED_HZ)
    policy = fedteddi(lambda_0=4.0, on_bw_fail=on_bw_fail)
    assert schedule(policy.choose(view), view, band_hz=10.0)[1] == taken


def test_fedcgd_is_the_greedy_without_drift(four_clients):
    """Oracle T4 with lambda 0, in a round where FedTeddi's weight is not 0."""
    policy = FedCgd(GreedyOptions(), 4, 3)
    policy.state.value = np.array([1.0, 1.0, 2.0])
    view = view_of(four_clients, round_in_frame=1)
    assert schedule(policy.choose(view), view)[1] == [2, 3, 0, 1]


def test_label_shares_come_from_the_source_asked_for(four_clients):
    """When all batches have one mix a device is as good as another, and the lowest ids go first."""
    four_clients.batches = np.tile([16, 0, 0], (4, 1))
    view = view_of(four_clients, round_in_frame=2)
    assert schedule(fedteddi(p_source="batch").choose(view), view)[1] == [0, 1, 2, 3]
    assert schedule(fedteddi(p_source="dataset").choose(view), view)[1] == [2, 3, 0, 1]


def test_the_global_mix_counts_devices_that_are_no_candidates(four_clients):
    """Towards (.4, .5, .1) device 1 completes 2 better than 0; towards the candidates' mix they tie."""
    view = view_of(four_clients, ids=[0, 1, 2], round_in_frame=2)
    assert schedule(fedteddi().choose(view), view)[0] == [2, 1, 0]


def test_the_noise_is_the_mean_deviation_weighted_by_data(four_clients):
    """Oracle T4, lambda 1: {3, 2} grows if sigma (1 / sqrt(2 b) - 1 / sqrt(3 b)) outweighs the rise."""
    shrink = 1 / np.sqrt(2) - 1 / np.sqrt(3)
    rise = 0.070243 + 4 / np.sqrt(16) * shrink
    enough = rise * np.sqrt(16) / shrink
    for factor, size in ((0.999, 2), (1.001, 4)):
        four_clients.deviation = np.array([0.0, 0.0, 2.5 * enough * factor, 0.0])
        view = view_of(four_clients)
        assert len(schedule(fedteddi(lambda_0=2.0).choose(view), view)[1]) == size, factor


def test_everyone_together_has_no_divergence_and_the_mean_drift(four_clients):
    """Oracle T7: U(all) = -lambda sum alpha_n(N) d_n with data-set shares."""
    random = np.random.default_rng(1)
    four_clients.counts = random.integers(1, 50, (40, 7))
    four_clients.previous = random.integers(1, 50, (40, 7))
    view, weights = view_of(four_clients), random.random(7) + 0.1
    drift, shares = share_changes(view) @ weights, class_shares(four_clients.counts)
    everyone = four_clients.global_shares("dataset")
    terms = objective_terms(view.samples, shares, everyone, drift, weights, 1.7, noise=1.0)
    sums = empty_sums(terms)
    for row in range(39):
        sums = add(sums, terms, row)
    expected = -1.7 * (view.samples @ drift) / view.samples.sum()
    assert cost_with_each(terms, sums)[39] == pytest.approx(expected, rel=1e-12)


def test_the_drift_weight_falls_to_zero_in_the_last_round_and_stays_there():
    """Oracle T7, K = 200."""
    weights = [drift_weight(2.0, k, 200) for k in (1, 100, 200, 201)]
    assert weights == pytest.approx([1.99, 1.0, 0.0, 0.0], abs=1e-15)


@pytest.mark.parametrize(
    ("mode", "part", "value"),
    [
        ("eq18", "all", [2.5, 1.0, 1.0]),
        ("lastlayer", "last_linear", [2.5, 1.0, 1.0]),
        ("scalar", "all", [5.0, 2.0, 1.0]),
    ],
)
def test_class_weights_are_learnt_from_the_devices_that_arrived(mode, part, value):
    """Oracle T8; the third class is in no batch."""
    policy = FedTeddi(FedTeddiOptions(L_mode=mode), 4, 3)
    heard, asked = report([1, 3], GRADIENTS)
    policy.hear(heard)
    assert asked == [([1, 3], part)]
    assert policy.state.value == pytest.approx(value)


@pytest.mark.parametrize(("mode", "arrived"), [("ones", [1, 3]), ("eq18", [])])
def test_no_gradients_are_asked_for_when_none_are_used(mode, arrived):
    policy = FedTeddi(FedTeddiOptions(L_mode=mode), 4, 3)
    heard, asked = report(arrived)
    policy.hear(heard)
    assert asked == []
    assert policy.state.value.tolist() == [1.0, 1.0, 1.0]


def test_learnt_class_weights_decide_the_next_round(four_clients):
    """When class c is all that counts, p^(c) = .1, devices without it tie at .1 L and the lowest id wins."""
    policy, view = FedTeddi(FedTeddiOptions(), 4, 3), view_of(four_clients, round_in_frame=2)
    before = schedule(policy.choose(view), view)[0]
    only_c = ClassGradients(np.array([[0.0, 0.0, 1.0]]), np.array([[1.0, 0.0, 0.0]]), np.array([0.4, 0.5, 0.1]))
    policy.hear(report([0], only_c)[0])
    assert before[0] == 2
    assert schedule(policy.choose(view), view)[0][0] == 0
