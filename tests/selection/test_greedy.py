import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from candidates import offers
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.selection.greedy import add, cost_with_each, empty_sums, greedy, objective_terms

SIZES, MIXES = np.array([100, 100, 200, 100]), np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
GLOBAL, WEIGHTS, DRIFT = np.array([0.4, 0.5, 0.1]), np.array([1.0, 1.0, 2.0]), np.array([0, 0, 0, 1.5])
NEED_HZ = {0: 5.0, 1: 5.0, 2: 5.0, 3: 12.0}


def worked(drift_weight):
    """Oracle T4 of the specification: sigma 4, b 16."""
    return objective_terms(SIZES, MIXES, GLOBAL, DRIFT, WEIGHTS, drift_weight, noise=4 / math.sqrt(16))


def cost(terms, members):
    """U of a set, through the sums that the greedy keeps."""
    sums = empty_sums(terms)
    for row in members[:-1]:
        sums = add(sums, terms, row)
    return cost_with_each(terms, sums)[members[-1]]


def in_band(band_hz):
    return lambda device, taken: sum(NEED_HZ[one] for one in [*taken, device]) <= band_hz


@pytest.mark.parametrize("lam", [0.0, 1.0, 2.0])
def test_costs_of_sets_have_the_worked_values(lam):
    """Oracle T4."""
    terms = worked(lam)
    assert terms.empty_cost == pytest.approx(1.1)
    expected = {(0,): 1.3, (3,): 1.2 - 1.5 * lam, (0, 3): 0.65 - 0.75 * lam, (2, 3): 0.2 - 0.5 * lam}
    expected[0, 1, 2, 3] = -0.3 * lam
    for members, value in expected.items():
        assert cost(terms, members) == pytest.approx(value, abs=1e-12), members


@pytest.mark.parametrize(("lam", "objective"), [(2.0, -0.8), (1.0, 0.407107), (0.0, 0.5)])
def test_the_worked_objectives_are_reached(lam, objective):
    """Oracle T4: J = sigma / sqrt(S b) + U."""
    terms = worked(lam)
    _, taken = offers(greedy(terms, np.arange(4), "skip"), lambda device, taken: True)
    assert cost(terms, taken) + 4 / math.sqrt(len(taken) * 16) == pytest.approx(objective, abs=1e-6)


def test_in_a_narrow_band_skip_passes_over_what_does_not_fit():
    """Oracle T5: 3 refused, 2 and 1 taken, 0 refused; U = 0.433333, J = 1.140440."""
    terms = worked(2.0)
    offered, taken = offers(greedy(terms, np.arange(4), "skip"), in_band(10.0))
    assert (offered, taken) == ([3, 2, 1, 0], [2, 1])
    assert cost(terms, taken) == pytest.approx(0.433333, abs=1e-6)
    assert cost(terms, taken) + 4 / math.sqrt(2 * 16) == pytest.approx(1.140440, abs=1e-6)


@dataclasses.dataclass(frozen=True)
class Case:
    """A random instance in exact fractions; rows are devices, of which some are candidates."""

    sizes: list[int]
    mixes: list[list[Fraction]]
    old_mixes: list[list[Fraction]]
    weights: list[Fraction]
    lam: Fraction
    noise: Fraction
    need: list[int]
    band: int
    ids: list[int]

    @property
    def global_mix(self):
        total = sum(self.sizes)
        return [sum(d * p[c] for d, p in zip(self.sizes, self.mixes, strict=True)) / total for c in self.classes]

    @property
    def classes(self):
        return range(len(self.weights))

    def drift(self, n):
        return sum(self.weights[c] * abs(self.mixes[n][c] - self.old_mixes[n][c]) for c in self.classes)

    def U(self, members):
        """Eq. 15, recomputed from nothing: delta(S) - lambda sum alpha_n(S) d_n."""
        if not members:
            return sum(self.weights[c] * self.global_mix[c] for c in self.classes)
        total = sum(self.sizes[n] for n in members)
        alpha = {n: Fraction(self.sizes[n], total) for n in members}
        delta = sum(
            self.weights[c] * abs(sum(alpha[n] * self.mixes[n][c] for n in members) - self.global_mix[c])
            for c in self.classes
        )
        return delta - self.lam * sum(alpha[n] * self.drift(n) for n in members)

    def J(self, members):
        return float(self.noise) / math.sqrt(len(members)) + float(self.U(members))

    def fits(self, device, taken):
        return sum(self.need[n] for n in [*taken, device]) <= self.band

    def double_loop(self, on_bw_fail):
        """Algorithm 1 with a refused device struck out, in exact arithmetic."""
        chosen, left, offered = [], list(self.ids), []
        while left:
            best = min(left, key=lambda n: (self.U([*chosen, n]) - self.U(chosen), n))
            if chosen and self.J([*chosen, best]) - self.J(chosen) > 1e-11:
                break
            left.remove(best)
            offered.append(best)
            if self.fits(best, chosen):
                chosen.append(best)
            elif on_bw_fail == "stop":
                break
        return offered, chosen

    def terms(self):
        return objective_terms(
            samples=np.array([self.sizes[n] for n in self.ids]),
            shares=np.array([self.mixes[n] for n in self.ids], dtype=float),
            global_shares=np.array(self.global_mix, dtype=float),
            drift=np.array([self.drift(n) for n in self.ids], dtype=float),
            class_weights=np.array(self.weights, dtype=float),
            drift_weight=float(self.lam),
            noise=float(self.noise),
        )


@st.composite
def cases(draw):
    devices, classes = draw(st.integers(1, 6)), draw(st.integers(1, 4))

    def per_device(values):
        return draw(st.lists(values, min_size=devices, max_size=devices))

    labels = st.lists(st.integers(0, classes - 1), min_size=4, max_size=4)
    mix = labels.map(lambda drawn: [Fraction(drawn.count(c), 4) for c in range(classes)])
    return Case(
        sizes=per_device(st.integers(1, 4)),
        mixes=per_device(mix),
        old_mixes=per_device(mix),
        weights=draw(st.lists(st.integers(0, 12).map(lambda n: Fraction(n, 4)), min_size=classes, max_size=classes)),
        lam=Fraction(draw(st.integers(0, 8)), 4),
        noise=Fraction(draw(st.integers(0, 8)), 4),
        need=per_device(st.integers(1, 5)),
        band=draw(st.integers(0, 20)),
        ids=sorted(draw(st.sets(st.integers(0, devices - 1), min_size=1))),
    )


@settings(max_examples=50)
@given(cases(), st.sampled_from(["skip", "stop"]))
def test_the_greedy_equals_a_plain_double_loop_in_exact_arithmetic(case, on_bw_fail):
    assert offers(greedy(case.terms(), np.array(case.ids), on_bw_fail), case.fits) == case.double_loop(on_bw_fail)


def test_equal_devices_are_taken_by_lowest_id_whatever_their_last_bits():
    mixes = np.array([[0.1, 0.9], [0.3, 0.7], [0.1, 0.9], [0.3, 0.7]])
    mixes[0] += [-1e-16, 1e-16]
    mixes[1] += [1e-16, -1e-16]
    terms = objective_terms(np.full(4, 7), mixes, np.array([0.5, 0.5]), np.zeros(4), np.ones(2), 0.0, noise=9.0)
    assert offers(greedy(terms, np.array([2, 5, 6, 9]), "skip"), lambda device, taken: True)[1] == [5, 9, 2, 6]
