import numpy as np
import torch

from edgesim.algorithms.safa import SafaState, distribute, merge


def test_who_lags_too_far_starts_over_and_who_lags_a_little_goes_on():
    """Round 9 with a tolerance of 5: versions 8, 7, 3, 2 lag by 0, 1, 5 and 6 rounds."""
    start = distribute(np.array([8, 7, 3, 2]), 9, 5)
    assert start.up_to_date.tolist() == [True, False, False, False]
    assert start.tolerable.tolist() == [False, True, True, False]
    assert start.deprecated.tolist() == [False, False, False, True]


def test_in_the_first_round_everybody_is_up_to_date():
    assert distribute(SafaState.start(torch.zeros(2), 3).versions, 1, 5).up_to_date.all()


def test_the_cache_over_three_rounds_worked_by_hand():
    """Scalar models, sizes 1, 2, 1: the global model is the mean of all entries, also of devices that were idle."""
    state, sizes = SafaState.start(torch.tensor([4.0]), 3), np.array([1, 2, 1])
    none = (np.empty(0, dtype=np.int64), torch.empty(0, 1))
    # Device 0 is picked; device 1 finished too, but its 20 counts from the next round on.
    one = merge(state, torch.tensor([4.0]), sizes, none[0], (np.array([0]), torch.tensor([[8.0]])),
                (np.array([1]), torch.tensor([[20.0]])), 1)  # fmt: skip
    assert one.tolist() == [(8 + 2 * 4 + 4) / 4]
    assert state.versions.tolist() == [1, 1, 0]
    two = merge(state, one, sizes, none[0], none, none, 2)
    assert two.tolist() == [(8 + 2 * 20 + 4) / 4]
    assert state.versions.tolist() == [1, 1, 0]
    # Device 2 lagged too far: its entry becomes the model it now starts from.
    three = merge(state, two, sizes, np.array([2]), (np.array([1]), torch.tensor([[6.0]])), none, 3)
    assert three.tolist() == [(8 + 2 * 6 + 13) / 4]
    assert state.cache.tolist() == [[8.0], [6.0], [13.0]]
    assert state.versions.tolist() == [1, 3, 0]


def test_with_everybody_picked_it_is_federated_averaging():
    random = np.random.default_rng(0)
    state, sizes = SafaState.start(torch.zeros(5, dtype=torch.float64), 4), np.array([3, 1, 2, 4])
    models = torch.from_numpy(random.random((4, 5)))
    none = (np.empty(0, dtype=np.int64), torch.empty(0, 5, dtype=torch.float64))
    merged = merge(state, torch.zeros(5, dtype=torch.float64), sizes, none[0], (np.arange(4), models), none, 1)
    assert torch.allclose(merged, torch.from_numpy(np.average(models.numpy(), axis=0, weights=sizes)))
