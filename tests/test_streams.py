"""Known answers: kat_vectors of Random123 (Salmon et al., SC 2011); marginals: Kolmogorov-Smirnov."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edgesim.streams import Streams, philox4x32


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_published_known_answers(counter, key, expected):
    words = tuple(np.array([int(word, 16)], dtype=np.uint64) for word in counter.split())
    k0, k1 = (int(word, 16) for word in key.split())
    produced = philox4x32(words, (k0, k1))
    assert " ".join(f"{int(word[0]):08x}" for word in produced) == expected


questions = st.tuples(
    st.lists(st.integers(0, 40), min_size=1, max_size=5, unique=True) | st.just([*range(3, 150)]),
    st.integers(0, 3000),
    st.sampled_from([None, 1, 2, 14, 60, 400]),
)


@settings(max_examples=40)
@given(st.lists(questions, min_size=1, max_size=12))
def test_draws_are_those_of_a_block_of_philox_whatever_was_asked_before(asked):
    """Few devices' draws are made for many rounds at once, of which nothing may be seen."""
    streams = Streams(3)
    for devices, round_, count in asked:
        blocks = 1 if count is None else -(-count // 2)
        counters = np.array(np.meshgrid(devices, round_, range(blocks), 0, indexing="ij"), dtype=np.uint64)
        a, b, c, d = philox4x32(tuple(counters.reshape(4, -1)), streams._key("x"))
        high = np.uint64(32)
        pairs = np.stack([a << high | b, c << high | d], axis=-1).reshape(len(devices), -1)
        wanted = ((pairs[:, :count] // np.uint64(4096)).astype(float) + 0.5) * 2.0**-52
        found = streams.uniform("x", np.array(devices), round_, count)
        np.testing.assert_array_equal(found, wanted[:, 0] if count is None else wanted)
        seeds = streams.seeds("x", np.array(devices), np.full(len(devices), round_))
        assert seeds.tolist() == (pairs[:, 0] // np.uint64(2)).tolist()


def test_draws_may_begin_with_any_pair_of_a_device_and_round():
    streams, devices = Streams(4), np.array([9, 2, 5])
    for kind in (streams.uniform, streams.normal):
        all_of_them = kind("availability", devices, 3, count=40)
        some = kind("availability", devices, 3, count=3, first_pair=np.array([0, 7, 18]))
        assert some.tolist() == [
            all_of_them[0, :3].tolist(),
            all_of_them[1, 14:17].tolist(),
            all_of_them[2, 36:39].tolist(),
        ]
        assert kind("availability", 9, 3, first_pair=5) == all_of_them[0, 10]


def test_devices_and_rounds_broadcast_to_a_table_of_the_single_draws():
    streams = Streams(1)
    table = streams.uniform("availability", np.arange(4)[:, None], np.arange(3))
    assert table.shape == (4, 3)
    single = [[streams.uniform("availability", d, r) for r in range(3)] for d in range(4)]
    np.testing.assert_array_equal(table, single)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((0, "compute", 1), (0, "shadowing", 1)),
        ((0, "compute", 1), (0, "compute", 2)),
        ((0, "compute", 1), (1, "compute", 1)),
        # The text that the key is made from must not run seed and name together.
        ((1, "1/compute", 1), (11, "compute", 1)),
    ],
)
def test_another_name_round_or_seed_gives_independent_draws(left, right):
    n = 20_000
    one, other = (Streams(seed).uniform(name, np.arange(n), round) for seed, name, round in (left, right))
    assert not np.any(one == other)
    # Under independence the correlation of n pairs has standard deviation 1 / sqrt(n); 4.5 sigma is 7e-6.
    assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / np.sqrt(n)


def test_neighbouring_devices_and_rounds_are_uncorrelated():
    draws = Streams(5).uniform("compute", np.arange(200)[:, None], np.arange(200))
    for one, other in ((draws[1:], draws[:-1]), (draws[:, 1:], draws[:, :-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4.5 / np.sqrt(one.size)


@pytest.mark.parametrize(("kind", "law"), [("uniform", "uniform"), ("normal", "norm"), ("exponential", "expon")])
def test_the_marginals_over_devices_rounds_and_places_are_right_and_finite(kind, law):
    for seed in (0, 1, 2**63 - 1):
        ask, many = getattr(Streams(seed), kind), np.arange(20_000)
        for draws in (ask("compute", many, 1), ask("compute", 3, many), ask("compute", 3, 1, 20_000)):
            assert stats.kstest(draws, law).pvalue > 1e-4
            assert np.isfinite(draws).all()


def test_seeds_are_distinct_non_negative_and_repeatable():
    seeds = Streams(4).seeds("jobs", np.arange(1000)[:, None], np.arange(20))
    assert seeds.dtype == np.int64
    assert seeds.min() >= 0
    assert len(np.unique(seeds)) == seeds.size
    assert Streams(4).seeds("jobs", 17, 5) == seeds[17, 5]


def test_generators_repeat_by_address_and_differ_between_addresses():
    def draws(name: str, device: int) -> list[float]:
        return Streams(2).generator(name, device).random(4).tolist()

    assert draws("partition", 0) == draws("partition", 0)
    assert draws("partition", 0) != draws("partition", 1)
    assert draws("partition", 0) != draws("pretrain", 0)


def test_the_generators_of_several_devices_are_those_of_each_alone():
    streams = Streams(5)
    together = [random.random(3).tolist() for random in streams.generators("partition", [4, 0, 9], 2)]
    assert together == [streams.generator("partition", device, 2).random(3).tolist() for device in (4, 0, 9)]
