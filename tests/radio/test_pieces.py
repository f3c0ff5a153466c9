"""Uploads over pieces of constant gain: the worked leg, and SciPy's integrals and roots beside every sum."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from edgesim.mobility.chords import chord_midpoints, chords_of
from edgesim.mobility.legs import Legs
from edgesim.radio.bandwidth import min_bandwidth_hz
from edgesim.radio.decibels import ratio_from_db
from edgesim.radio.environment import load_environment
from edgesim.radio.link import ShannonLink
from edgesim.radio.pieces import Pieces

CELL = load_environment("fedteddi-macro")
LINK, TX_W, BITS = CELL.link(), 10**-0.7, np.array([17_881_664.0])
SPEED_MPS, LENGTH_M = 15.0, math.hypot(250.0, 60.0)
LEG = Legs(
    *(np.array([value]) for value in (0.0, LENGTH_M / SPEED_MPS, -100.0, 30.0)),
    *(np.array([way_m / LENGTH_M * SPEED_MPS]) for way_m in (250.0, 60.0)),
)


def rx_w(x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
    return TX_W * ratio_from_db(-CELL.path_loss.loss_db(np.maximum(np.hypot(x_m, y_m), 10.0)))


def worked(side_m: float = 5.0) -> Pieces:
    chords = chords_of(LEG, np.array([0]), np.array([0.0]), LEG.t1_s, side_m)
    return Pieces.of(chords.place, chords.begin_s, chords.end_s, rx_w(chords.x_m, chords.y_m))


def at(value: float) -> np.ndarray:
    return np.array([value])


def continuous_end_s(bandwidth_hz: float, bits: float, start_s: float) -> float:
    def rate(t_s: float) -> float:
        x_m, y_m = LEG.at(t_s)
        return bandwidth_hz * math.log2(1.0 + rx_w(x_m, y_m).item() / (bandwidth_hz * LINK.noise_w_per_hz))

    return brentq(lambda t_s: quad(rate, start_s, t_s, epsabs=1e-3, epsrel=1e-12)[0] - bits, start_s + 0.1, 17.0)


def test_the_worked_upload_ends_a_little_after_that_on_the_continuous_path():
    assert worked().ends_s(LINK, at(1e6), BITS, at(2.0)) == pytest.approx(3.047872472710, abs=1e-9)
    continuous_s = continuous_end_s(1e6, BITS.item(), 2.0)
    assert continuous_s == pytest.approx(3.047672437216, abs=1e-9)
    for side_m, error_s in (
        (1.0, -2.5e-5),
        (2.0, 2.8e-5),
        (5.0, 2.0e-4),
        (10.0, -8.0e-4),
        (20.0, 5.8e-3),
        (50.0, 4e-2),
    ):
        end_s = worked(side_m).ends_s(LINK, at(1e6), BITS, at(2.0)).item()
        assert end_s - continuous_s == pytest.approx(error_s, rel=0.02)


@pytest.mark.parametrize(
    ("start_s", "end_s", "present_hz", "known_hz", "worst_hz"),
    [
        (10.0, 14.0, 239_835.706851693, 259_692.680082369, 281_368.700555479),
        (8.0, 9.0, 984_042.869387453, 1_003_040.458433171, 1_030_525.231111047),
    ],
)
def test_the_worked_least_bandwidths(start_s, end_s, present_hz, known_hz, worst_hz):
    pieces, window = worked(), (at(start_s), at(end_s))
    present_w = rx_w(*chord_midpoints(LEG, start_s, 5.0))
    over_s, noise = end_s - start_s, LINK.noise_w_per_hz
    assert min_bandwidth_hz(BITS, over_s, present_w, noise) == pytest.approx(present_hz, rel=1e-11)
    assert pieces.least_hz(LINK, BITS, *window) == pytest.approx(known_hz, rel=1e-11)
    assert min_bandwidth_hz(BITS, over_s, pieces.least_power_w(*window), noise) == pytest.approx(worst_hz, rel=1e-11)
    if start_s == 10.0:
        present = min_bandwidth_hz(BITS, over_s, present_w, noise)
        assert pieces.ends_s(LINK, present, BITS, at(10.0)) == pytest.approx(14.328233531698, abs=1e-9)


@st.composite
def uploads(draw: st.DrawFn):
    """Pieces of one to four uploads, a link perhaps with a cap, bandwidths and windows."""
    count = draw(st.integers(1, 4))
    lengths = [draw(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=6)) for _ in range(count)]
    powers = [draw(st.lists(st.floats(-13.0, -7.0), min_size=len(one), max_size=len(one))) for one in lengths]
    link = ShannonLink(LINK.noise_w_per_hz, draw(st.sampled_from([math.inf, 5.0])))
    start_s = np.array([draw(st.floats(0.0, 0.9)) * sum(one) for one in lengths])
    end_s = np.array([max(sum(one), begin + 0.01) for one, begin in zip(lengths, start_s, strict=True)])
    edges = [np.append(0.0, np.cumsum(one)) for one in lengths]
    for own, end in zip(edges, end_s, strict=True):
        own[-1] = max(own[-1], end)
    bandwidth_hz = np.array([draw(st.floats(1e3, 1e7)) for _ in lengths])
    return edges, [10.0 ** np.array(one) for one in powers], link, bandwidth_hz, start_s, end_s


def rate(link: ShannonLink, bandwidth_hz: float, power_w: float) -> float:
    return min(
        bandwidth_hz * math.log2(1 + power_w / (bandwidth_hz * link.noise_w_per_hz)), link.max_bps_per_hz * bandwidth_hz
    )


def integral(link, bandwidth_hz, edges_s, powers_w, start_s, end_s) -> float:
    def at_s(t_s: float) -> float:
        return rate(
            link, bandwidth_hz, powers_w[min(int(np.searchsorted(edges_s, t_s, "right")) - 1, len(powers_w) - 1)]
        )

    inner = [edge for edge in edges_s if start_s < edge < end_s]
    return sum(quad(at_s, a, b)[0] for a, b in zip([start_s, *inner], [*inner, end_s], strict=True))


def pieces_of(edges, powers) -> Pieces:
    return Pieces.of(
        np.repeat(np.arange(len(edges)), [len(one) for one in powers]),
        np.concatenate([one[:-1] for one in edges]),
        np.concatenate([one[1:] for one in edges]),
        np.concatenate(powers),
    )


@settings(deadline=None, max_examples=60)
@given(uploads(), st.floats(0.05, 0.95))
def test_sums_are_the_integrals_and_roots_of_scipy(made_up, share):
    edges, powers, link, bandwidth_hz, start_s, end_s = made_up
    pieces = pieces_of(edges, powers)
    whole = np.array([integral(link, *one) for one in zip(bandwidth_hz, edges, powers, start_s, end_s, strict=True)])
    assert pieces.bits(link, bandwidth_hz, start_s, end_s) == pytest.approx(whole, rel=1e-9)
    assert pieces.mean_bps(link, bandwidth_hz, start_s, end_s) == pytest.approx(whole / (end_s - start_s), rel=1e-9)
    bits = share * whole
    ends_s, least_hz = pieces.ends_s(link, bandwidth_hz, bits, start_s), pieces.least_hz(link, bits, start_s, end_s)
    for row in range(len(bits)):
        own = edges[row], powers[row], start_s[row]

        def through(t_s: float, row=row, own=own) -> float:
            return integral(link, bandwidth_hz[row], *own, t_s) - bits[row]

        assert ends_s[row] == pytest.approx(brentq(through, start_s[row], end_s[row], xtol=1e-13), abs=1e-9)

        def enough(log_hz: float, row=row, own=own) -> float:
            return integral(link, math.exp(log_hz), *own, end_s[row]) / bits[row] - 1.0

        root = math.exp(brentq(enough, -30.0, math.log(bandwidth_hz[row]), xtol=1e-13))
        assert least_hz[row] == pytest.approx(root, rel=1e-9)
    assert np.isinf(pieces.ends_s(link, bandwidth_hz, 1.01 * whole, start_s)).all()


@pytest.mark.parametrize("cap", [3.0, 6.0, 9.0])
@pytest.mark.parametrize("above", [0.1, 0.7, 5.0])
def test_a_cap_that_only_one_of_two_pieces_reaches(cap, above):
    """On 1 MHz the first second has ``above`` more bit/s/Hz than the cap, the second one has one less."""
    link, per_hz = ShannonLink(LINK.noise_w_per_hz, cap), np.array([cap + above, cap - 1.0])
    pieces = Pieces(np.array([[0.0, 1.0, 2.0]]), (2.0**per_hz - 1.0)[None] * 1e6 * link.noise_w_per_hz)
    assert pieces.least_hz(link, at((2 * cap - 1.0) * 1e6), at(0.0), at(2.0)) == pytest.approx(1e6, rel=1e-12)


def test_an_upload_does_not_depend_on_those_beside_it_nor_on_pieces_of_no_length_at_its_end():
    random = np.random.default_rng(3)
    counts = random.integers(9, 40, 60)
    powers = [10.0 ** random.uniform(-13, -8, count) for count in counts]
    edges = [np.append(0.0, np.cumsum(random.uniform(0.1, 0.5, count))) for count in counts]
    together = pieces_of(edges, powers)
    hz, end_s, zero = np.full(60, 1e6), np.array([own[-1] for own in edges]), np.zeros(60)
    bits = together.bits(LINK, hz, zero, end_s)
    least_hz, ends_s = together.least_hz(LINK, bits, zero, end_s), together.ends_s(LINK, hz, 0.5 * bits, zero)
    for row in range(60):
        one = slice(row, row + 1)
        alone = pieces_of(edges[one], powers[one])
        assert bits[row] == alone.bits(LINK, hz[one], zero[one], end_s[one])
        assert ends_s[row] == alone.ends_s(LINK, hz[one], 0.5 * bits[one], zero[one])
        assert least_hz[row] == alone.least_hz(LINK, bits[one], zero[one], end_s[one])


def test_no_bandwidth_suffices_beyond_the_wide_band_limit():
    pieces = Pieces(np.array([[0.0, 1.0, 2.0]]), np.array([[1e-12, 3e-12]]))
    limit = 4e-12 / (LINK.noise_w_per_hz * math.log(2.0))
    least = [pieces.least_hz(LINK, at(share * limit), at(0.0), at(2.0)).item() for share in (0.999, 1.0, 1.001)]
    assert np.isfinite(least[0])
    assert least[1:] == [math.inf, math.inf]
    assert pieces.bits(LINK, at(least[0]), at(0.0), at(2.0)).item() == pytest.approx(0.999 * limit, rel=1e-9)


def test_one_piece_gives_the_bits_of_the_formula_without_pieces():
    pieces = Pieces.of(
        np.zeros(3, dtype=np.int64), np.array([0.0, 1.0, 2.5]), np.array([1.0, 2.5, 9.0]), np.full(3, 1e-10)
    )
    assert pieces.edges_s.tolist() == [[0.0, 9.0]]
    assert pieces.least_hz(LINK, BITS, at(0.3), at(1.7)) == min_bandwidth_hz(
        BITS, at(1.7) - 0.3, 1e-10, LINK.noise_w_per_hz
    )
    rates = LINK.rates(at(1e6), at(1e-10))
    assert pieces.ends_s(LINK, at(1e6), BITS, at(0.3)) == LINK.end_each_s(rates, BITS, 0.3)
    assert pieces.bits(LINK, at(1e6), at(0.3), at(1.7)) == LINK.bits_each(rates, 0.3, 1.7)


def test_a_device_that_rests_for_ever_ends_its_upload():
    pieces = Pieces.of(
        np.array([0, 0, 1]), np.array([0.0, 4.0, 0.0]), np.array([4.0, np.inf, np.inf]), np.array([1e-12, 1e-9, 1e-9])
    )
    ends_s = pieces.ends_s(LINK, np.full(2, 1e6), np.full(2, 1e8), np.zeros(2))
    assert np.isfinite(ends_s).all()
    assert ends_s[1] == pytest.approx(1e8 / rate(LINK, 1e6, 1e-9))
    assert pieces.bits(LINK, np.full(2, 1e6), np.zeros(2), ends_s) == pytest.approx(1e8)


def test_a_window_that_has_no_length_needs_all_the_bandwidth_there_is():
    assert np.isinf(worked().least_hz(LINK, BITS, at(3.0), at(3.0)))
