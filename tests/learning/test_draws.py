"""Random numbers of a job's steps."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch.func import vmap

from edgesim.learning import draws

DOUBLE = torch.empty(0, dtype=torch.float64)


def test_draws_follow_their_laws():
    key = draws.key(3, 1)
    for found, law in (
        (draws.uniform(key, 0, (50_000,), DOUBLE), "uniform"),
        (draws.normal(key, 1, (50_000,), DOUBLE), "norm"),
    ):
        assert stats.kstest(found.numpy(), law).pvalue > 1e-3


@pytest.mark.parametrize("like", [torch.empty(0), DOUBLE], ids=["float32", "float64"])
def test_uniforms_lie_within_the_open_interval_and_are_the_same_in_either_precision(like):
    found = draws.uniform(draws.key(0, 0), 0, (1 << 20,), like)
    assert found.dtype == like.dtype
    assert 0 < float(found.min()) < 2**-18
    assert 1 - 2**-18 < float(found.max()) < 1
    assert torch.equal(found.double(), draws.uniform(draws.key(0, 0), 0, (1 << 20,), DOUBLE))
    assert draws.normal(draws.key(0, 0), 0, (1 << 20,), like).isfinite().all()


def test_draws_of_other_seeds_steps_and_numbers_are_uncorrelated():
    count = 50_000
    base = draws.normal(draws.key(3, 1), 0, (count,), DOUBLE)
    others = [((4, 1), 0), ((3, 2), 0), ((3, 1), 1), ((3, 1), 31)]
    for key, number in others:
        other = draws.normal(draws.key(*key), number, (count,), DOUBLE)
        assert abs(float((base * other).mean())) < 5 / np.sqrt(count)


def test_further_rows_change_no_others_and_clients_of_a_stack_draw_what_they_draw_alone():
    keys = [draws.key(seed, 4) for seed in range(3)]
    words = torch.tensor(keys, dtype=torch.int32)
    stacked = vmap(lambda key: draws.normal((key[0], key[1]), 2, (6, 5), DOUBLE))(words)
    for own, key in zip(stacked, keys, strict=True):
        torch.testing.assert_close(own[:4], draws.normal(key, 2, (4, 5), DOUBLE), rtol=1e-15, atol=1e-15)
