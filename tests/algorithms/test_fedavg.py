import numpy as np
import torch

from edgesim.algorithms.fedavg import aggregate, counted, weights


def test_weights_are_shares_of_the_merged_data():
    assert weights(np.array([100, 100, 200])).tolist() == [0.25, 0.25, 0.5]
    assert weights(np.empty(0, dtype=np.int64)).shape == (0,)


def test_equals_count_the_same_whatever_they_hold():
    assert weights(counted(np.array([100, 100, 200]), "equal")).tolist() == [1 / 3] * 3
    assert weights(counted(np.array([100, 100, 200]), "samples")).tolist() == [0.25, 0.25, 0.5]


def test_the_model_moves_by_the_weighted_mean_of_the_updates():
    updates = torch.tensor([[4.0, 0.0, 8.0], [0.0, -2.0, 4.0]])
    new = aggregate(torch.tensor([1.0, 1.0, 1.0]), updates, np.array([0.75, 0.25]))
    assert new.tolist() == [4.0, 0.5, 8.0]
