import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgesim.algorithms.safa import Cache, Versions

NOBODY = np.zeros(3, dtype=bool)


def models(**values):
    return {int(device[1:]): torch.tensor([value]) for device, value in values.items()}


def test_who_lags_too_far_starts_over_and_who_lags_a_little_goes_on():
    """Round 9 with a tolerance of 5: versions 8, 7, 3, 2 lag by 0, 1, 5 and 6 rounds."""
    start = Versions(np.array([8, 7, 3, 2]), 5).distribution(9)
    assert start.up_to_date.tolist() == [True, False, False, False]
    assert start.tolerable.tolist() == [False, True, True, False]
    assert start.deprecated.tolist() == [False, False, False, True]


def test_everybody_begins_up_to_date_and_who_finishes_stays_so():
    versions = Versions.start(3, 5, 7)
    assert versions.distribution(7).up_to_date.all()
    versions.merged(np.array([1]), 7)
    assert versions.distribution(8).up_to_date.tolist() == [False, True, False]


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_an_idle_device_is_forced_to_the_global_model_every_lag_plus_first_round(lag):
    """Its version is that of round 0 at first, so it first lags too far in round lag + 2."""
    versions, forced = Versions.start(1, lag, 1), []
    for t in range(1, 20):
        forced += [t] * int(versions.distribution(t).deprecated[0])
        versions.merged(np.empty(0, dtype=np.int64), t)
    assert forced == list(range(lag + 2, 20, lag + 1))


def test_the_cache_over_three_rounds_worked_by_hand():
    """Scalar models, sizes 1, 2, 1: the global model is the mean of all entries, also of devices that were idle."""
    cache, shares = Cache(torch.tensor([4.0])), np.array([0.25, 0.5, 0.25])
    # Device 0 is picked; device 1 finished too, but its 20 counts from the next round on.
    one = cache.merge(torch.tensor([4.0]), shares, NOBODY, [0, 1, 2], models(d0=8.0), models(d1=20.0))
    assert one.tolist() == [(8 + 2 * 4 + 4) / 4]
    two = cache.merge(one, shares, NOBODY, [0], {}, {})
    assert two.tolist() == [(8 + 2 * 20 + 4) / 4]
    # Device 2 lagged too far: its entry becomes the model it now starts from.
    three = cache.merge(two, shares, np.array([False, False, True]), [], models(d1=6.0), {})
    assert three.tolist() == [(8 + 2 * 6 + 13) / 4]
    # Device 0 fetched the second round's model and failed: it goes on with that, though its 8 still counts.
    assert [cache.own(device).tolist() for device in range(3)] == [one.tolist(), [6.0], two.tolist()]
    # And device 2's entry stays that of its forced sync.
    assert cache.merge(three, shares, NOBODY, [], {}, {}).tolist() == [(8 + 2 * 6 + 13) / 4]


def test_no_model_is_held_twice_or_longer_than_it_is_needed():
    cache, shares, first, second = Cache(torch.tensor([0.0])), np.full(3, 1 / 3), *torch.tensor([[1.0], [2.0]])
    cache.merge(first, shares, NOBODY, [0, 1, 2], models(d0=1.0), models(d2=3.0))
    assert cache.local[1] is first
    assert all(cache.local[device] is cache.entries[device] for device in (0, 2))
    cache.merge(second, shares, np.array([True, True, True]), [1], {}, {})
    assert all(held is second for held in (cache.local | cache.entries).values())


def test_with_everybody_picked_it_is_federated_averaging():
    random = np.random.default_rng(0)
    sizes, trained = np.array([3, 1, 2, 4]), torch.from_numpy(random.random((4, 5)))
    cache = Cache(torch.zeros(5, dtype=torch.float64))
    merged = cache.merge(cache.start, sizes / 10, np.zeros(4, dtype=bool), range(4), dict(enumerate(trained)), {})
    assert torch.allclose(merged, torch.from_numpy(np.average(trained.numpy(), axis=0, weights=sizes)))


@st.composite
def histories(draw):
    """Rounds of (picked, undrafted, failed) among six devices."""
    rounds = []
    for _ in range(draw(st.integers(1, 12))):
        fates = draw(st.lists(st.sampled_from(["picked", "undrafted", "failed", "away"]), min_size=6, max_size=6))
        rounds.append([[d for d in range(6) if fates[d] == fate] for fate in ("picked", "undrafted", "failed")])
    return rounds


@given(histories(), st.integers(0, 3))
def test_the_sparse_cache_is_one_with_a_row_for_every_device(rounds, lag):
    """The rule word by word, on a whole table of scalar models; each trained model is a number of its own."""
    shares = np.array([0.1, 0.1, 0.2, 0.2, 0.15, 0.25])
    table, local, versions, model = [5.0] * 6, [5.0] * 6, [0] * 6, 5.0
    cache, state = Cache(torch.tensor([5.0], dtype=torch.float64)), Versions.start(6, lag, 1)
    merged = cache.start
    for t, (picked, undrafted, failed) in enumerate(rounds, start=1):
        deprecated = [d for d in range(6) if t - 1 - versions[d] > lag]
        latest = [d for d in range(6) if versions[d] == t - 1]
        present = picked + undrafted + failed
        fetched = [d for d in present if d in latest + deprecated]
        for d in fetched:
            local[d] = model
        for d in deprecated:
            table[d] = local[d] = model
            versions[d] = t - 1
        for d in picked:
            table[d] = 100.0 * t + d
        model = sum(share * entry for share, entry in zip(shares, table, strict=True))
        for d in undrafted:
            table[d] = 100.0 * t + d
        for d in picked + undrafted:
            local[d] = table[d]
            versions[d] = t
        start = state.distribution(t)
        assert np.flatnonzero(start.deprecated).tolist() == deprecated
        uploads = [{d: torch.tensor([100.0 * t + d], dtype=torch.float64) for d in ids} for ids in (picked, undrafted)]
        merged = cache.merge(merged, shares, start.deprecated, fetched, *uploads)
        state.merged(np.array(picked + undrafted, dtype=np.int64), t)
        assert abs(float(merged) - model) < 1e-9
    behind = state.distribution(len(rounds) + 1)
    for d in np.flatnonzero(behind.tolerable).tolist():
        assert cache.own(d).tolist() == pytest.approx([local[d]])
