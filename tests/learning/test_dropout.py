import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from edgesim.learning import dropout
from edgesim.learning.dropout import hashed, install, key, noise

words = st.integers(-(2**31), 2**31 - 1)


def _hashed_by_hand(counter, first, second):
    """The same hash on Python's integers, modulo 2^32."""
    x = (counter ^ first) % 2**32
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x = (x + second) * 0x846CA68B % 2**32
    x ^= x >> 16
    return x - 2**32 if x >= 2**31 else x


@given(st.lists(words, min_size=1, max_size=40), words, words)
def test_the_hash_is_that_of_unsigned_integers(counter, first, second):
    found = hashed(torch.tensor(counter, dtype=torch.int32), (first, second))
    assert found.tolist() == [_hashed_by_hand(i, first, second) for i in counter]


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 0.9])
def test_the_share_that_is_dropped_is_p_within_five_standard_deviations(p):
    shape, like = torch.Size((100_000,)), torch.empty(0)
    values = noise(shape, key(3, 1, 0), p, like)
    dropped = float((values == 0).double().mean())
    assert abs(dropped - p) <= 5 * np.sqrt(p * (1 - p) / 100_000)
    torch.testing.assert_close(values, (values > 0).float() / (1 - p))
    assert not noise(shape, key(3, 1, 0), 1.0, like).any()


def test_masks_of_other_seeds_steps_layers_and_places_are_uncorrelated():
    shape, like = torch.Size((50_000,)), torch.empty(0)
    base = noise(shape, key(3, 1, 0), 0.5, like) - 1
    others = [noise(shape, key(*place), 0.5, like) - 1 for place in ((4, 1, 0), (3, 2, 0), (3, 1, 1), (1, 3, 0))]
    others += [base.roll(lag) for lag in (1, 2, 3, 7, 8, 32, 256, 1024)]
    for other in others:
        assert abs(float((base * other).mean())) < 5 / np.sqrt(50_000)


def test_a_key_is_a_function_of_seed_step_and_layer():
    keys = {key(seed, step, layer) for seed in (0, 2**63 - 1) for step in range(50) for layer in range(20)}
    assert len(keys) == 2000
    assert key(5, 6, 7) == key(5, 6, 7)


def test_only_plain_dropout_is_replaced_at_any_depth_and_calls_are_counted_within_a_step():
    module = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.2), nn.Dropout2d(0.2)), nn.AlphaDropout(0.1))
    masks = install(module)
    kinds = [type(layer).__name__ for layer in module.modules() if not isinstance(layer, nn.Sequential)]
    assert kinds == ["MaskedDropout", "MaskedDropout", "Dropout2d", "AlphaDropout"]
    asked = []
    for step in (0, 1):
        masks.begin(lambda call, step=step: asked.append((step, call)) or (1, 2))
        module[:1](torch.ones(3))
        module[1][:1](torch.ones(3))
        module[:1](torch.ones(3))
    assert asked == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_one_layer_in_two_places_is_replaced_in_both():
    layer = nn.Dropout(0.5)
    module = nn.Sequential(layer, nn.Identity(), layer)
    install(module).begin(functools.partial(dropout.key, 1, 1))
    kept = module(torch.ones(10_000)) > 0
    assert abs(float(kept.double().mean()) - 0.25) < 0.03


def test_gradients_pass_where_the_activation_did():
    module = nn.Sequential(nn.Dropout(0.3))
    install(module).begin(functools.partial(dropout.key, 1, 2))
    x = torch.ones(1000, requires_grad=True)
    out = module(x)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())
    module.eval()
    assert torch.equal(module(x), x)
