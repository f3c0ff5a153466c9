"""Ways to write places, and the places that are kept."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgesim.learning.codecs import kept
from edgesim.learning.codecs.message import Reader
from edgesim.learning.codecs.places import WAYS, enumerative, rice

SETS = st.integers(1, 400).flatmap(lambda d: st.tuples(st.just(d), st.sets(st.integers(0, d - 1), min_size=1)))


@given(SETS)
def test_places_are_read_back_with_the_bits_that_their_number_says(drawn):
    d, places = drawn[0], np.array(sorted(drawn[1]))
    for way in WAYS.values():
        message = way.write(places, d)
        reader = Reader(message)
        assert way.read(reader, d, len(places)).tolist() == places.tolist()
        assert len(message) == reader.place == way.size_bits(d, len(places))


def test_numbers_of_sets_are_all_numbers_once():
    """Of the 56 sets of 3 among 8 places, in 6 bits, the fewest that there can be."""
    messages = {tuple(enumerative.write(np.array(places), 8).tolist()) for places in combinations(range(8), 3)}
    numbers = sorted(int("".join(map(str, message)), 2) for message in messages)
    assert numbers == list(range(math.comb(8, 3)))
    assert enumerative.size_bits(8, 3) == 6


def test_sizes_beyond_the_exact_ones_go_on_where_those_end():
    d = enumerative.EXACT
    for k in (1, 7, 41, 1000, d // 2, d - 1):
        logarithm = (math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)) / math.log(2)
        assert enumerative.size_bits(d, k) == math.ceil(logarithm - 1e-6)
        assert enumerative.size_bits(d + 1, k) == (math.comb(d + 1, k) - 1).bit_length()


@pytest.mark.parametrize("power", [13, 17, 20, 22, 23, 30])
def test_one_among_a_power_of_two_takes_its_exponent(power):
    """Logarithms of the factorials of 2^13 and 2^20, among others, are a little too far apart."""
    for k in (1, 2**power - 1):
        assert enumerative.size_bits(2**power, k) == power
    assert enumerative.size_bits(2**power + 1, 1) == power + 1


@given(st.integers(1, 5000).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, d))))
def test_rice_pads_to_the_least_of_all_parameters_and_some_places_need_all_of_it(drawn):
    d, k = drawn
    sizes = [k * (low + 1) + (d - k) // 2**low for low in range(20)]
    assert rice.size_bits(d, k) == min(sizes)
    assert rice.parameter(d, k) == sizes.index(min(sizes))
    ends = np.append(np.arange(k - 1), d - 1)
    gaps = np.diff(ends, prepend=-1) - 1
    low = rice.parameter(d, k)
    assert int((gaps >> low).sum()) + k * (low + 1) == rice.size_bits(d, k)


@pytest.mark.parametrize(("ratio", "d", "k"), [(0.07, 100, 7), (0.01, 558_802, 5_589), (1e-9, 5, 1), (1.0, 5, 5)])
def test_shares_are_rounded_up_and_leave_one_number_at_least(ratio, d, k):
    assert kept.count(ratio, d) == k


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.data())
def test_of_equal_scores_the_lower_places_are_kept(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    found = kept.largest(torch.tensor(scores, dtype=torch.float32), k).tolist()
    assert found == sorted(sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k])


@pytest.mark.parametrize("kind", ["random", "few values", "a period of the sample's", "sparse"])
def test_the_largest_of_many_are_found_by_a_sample(kind):
    """Scores for which the sample says much, too much, or nothing of the others."""
    random = np.random.default_rng(0)
    scores = random.standard_normal(20_000).astype(np.float32)
    if kind == "few values":
        scores = np.round(scores)
    elif kind == "a period of the sample's":
        scores[::64] += 100
    elif kind == "sparse":
        scores[random.random(20_000) < 0.999] = 0
    for k in (1, 7, 200, 400, 9_000, 20_000):
        found = kept.largest(torch.from_numpy(scores), k).tolist()
        assert found == sorted(np.argsort(-scores, kind="stable")[:k].tolist())
