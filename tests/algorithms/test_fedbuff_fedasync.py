"""The server's steps, on scalars."""

import numpy as np
import pytest
import torch

from edgesim.algorithms import fedasync, fedbuff


def test_a_buffer_is_divided_by_its_length_not_by_its_weights():
    model, deltas = torch.tensor([1.0]), torch.tensor([[1.0], [1.0]])
    moved = fedbuff.aggregate(model, deltas, fedbuff.weights(np.array([0.707107, 1.0]), server_lr=1.0))
    assert float(moved) == pytest.approx(1.853553, abs=1e-6)
    assert float(fedbuff.aggregate(model, deltas, fedbuff.weights(np.ones(2), 0.5))) == pytest.approx(1.5)


def test_mixing_is_between_the_model_and_what_the_client_sends():
    assert float(fedasync.mix(torch.tensor([0.5]), torch.tensor([1.0]), 0.5)) == pytest.approx(0.75)
    assert float(fedasync.mix(torch.tensor([1.625]), torch.tensor([1.75]), 0.5)) == pytest.approx(1.6875)
