"""The band over time, against the specification's worked schedules and an independent fluid integration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.engine.clock import Clock, EventKind
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.uplink import ReservedBand, Upload
from edgesim.radio.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.radio.capacity import one_capacity_table
from edgesim.radio.link import RecordedLink, ShannonLink

NOISE_W_PER_HZ = 1e-20


def play(sharing, band_hz, starts_s, bits, snr_hz, weights_hz, leaves_s=None, link=None):
    """(end, sent bits, through) of each upload."""
    clock, link = Clock(), link or ShannonLink(NOISE_W_PER_HZ)
    band = SharedBand(clock, band_hz, link) if sharing == "reshared" else ReservedBand(clock, link)
    ends = {}

    def device(number):
        power_w = snr_hz[number] * NOISE_W_PER_HZ
        upload = Upload(number, power_w, weights_hz[number], bits[number], np.inf, 0.0, clock.now)
        band.begin(upload, lambda through: ends.update({number: (clock.now, upload.sent_bits, through)}))
        if leaves_s is not None and leaves_s[number] < np.inf:
            drops_s = max(leaves_s[number], clock.now)
            clock.call_at(drops_s, EventKind.LEFT, lambda _: band.drop(upload), number)

    for number, start_s in enumerate(starts_s):
        clock.call_at(start_s, EventKind.COMPUTED, lambda _, number=number: device(number), number)
    clock.run()
    return [ends[number] for number in range(len(starts_s))]


def fluid(band_hz, starts_s, bits, snr_hz, weights_hz):
    """The same schedule by stepping from event to event over plain arrays; end instants."""
    left, now_s = np.array(bits, dtype=float), 0.0
    starts_s, ends_s = np.array(starts_s), np.full(len(bits), np.inf)
    while np.isinf(ends_s).any():
        active = (starts_s <= now_s) & np.isinf(ends_s)
        shares = np.where(active, weights_hz, 0.0)
        shares = shares * band_hz / shares.sum() if active.any() else shares
        rates = np.zeros(len(bits))
        rates[active] = shares[active] * np.log2(1 + np.array(snr_hz)[active] / shares[active])
        to_end_s = np.min(left[active] / rates[active]) if active.any() else np.inf
        coming = starts_s[starts_s > now_s]
        step_s = min(to_end_s, coming.min() - now_s if len(coming) else np.inf)
        left -= rates * step_s
        now_s = coming.min() if len(coming) and step_s == coming.min() - now_s else now_s + step_s
        ends_s[active & (left <= 1e-6)] = now_s
    return ends_s


@pytest.mark.parametrize(("second_s", "ends_s"), [(0.0, [1.823735, 1.823735]), (0.5, [1.414856, 1.914856])])
def test_a_second_upload_halves_the_band_and_carries_the_remaining_bits_over(second_s, ends_s):
    # Alone 9,967,226.259 bit/s, both 5,483,252.726 each; the second ends on its own at full rate.
    ends = play("reshared", 1e6, [0.0, second_s], [1e7, 1e7], [1e9, 1e9], [1.0, 1.0])
    assert [end for end, *_ in ends] == pytest.approx(ends_s, abs=1e-6)


def test_fifty_random_uploads_end_as_a_fluid_integration_says():
    rng = np.random.default_rng(0)
    starts = np.sort(rng.uniform(0, 3, 50))
    bits, snr, weights = rng.uniform(1e5, 5e6, 50), 10 ** rng.uniform(6, 9, 50), rng.uniform(1e3, 1e6, 50)
    ends = play("reshared", 5e6, starts, bits, snr, weights)
    assert [end for end, *_ in ends] == pytest.approx(list(fluid(5e6, starts, bits, snr, weights)), abs=1e-6)
    assert [sent for _, sent, _ in ends] == pytest.approx(list(bits))


leaves = st.floats(0, 2) | st.just(np.inf)
uploads = st.lists(st.tuples(st.floats(0, 1), st.floats(1e4, 1e7), st.floats(1e6, 1e9), leaves), min_size=1, max_size=8)


@settings(deadline=None)
@given(uploads, st.floats(1, 3))
def test_with_least_bandwidths_re_sharing_ends_nobody_later_than_reserved(rows, slack):
    starts, bits, snr, leave = (list(column) for column in zip(*rows, strict=True))
    needs = min_bandwidth_hz(bits, 2.0 - np.array(starts), np.array(snr) * NOISE_W_PER_HZ, NOISE_W_PER_HZ)
    fits = np.flatnonzero(np.isfinite(needs))
    if len(fits) == 0:
        return
    starts, bits, snr, leave = ([column[row] for row in fits] for column in (starts, bits, snr, leave))
    band_hz = slack * float(needs[fits].sum())
    reserved = play("reserved", band_hz, starts, bits, snr, needs[fits], leave)
    reshared = play("reshared", band_hz, starts, bits, snr, needs[fits], leave)
    for start_s, leave_s, (end, sent, through), (other, more, also) in zip(
        starts, leave, reserved, reshared, strict=True
    ):
        assert end == pytest.approx(min(2.0, max(leave_s, start_s)))
        assert other <= end * (1 + 1e-9)
        assert also or not through
        assert more >= sent * (1 - 1e-9)


def test_a_recorded_capacity_is_shared_anew_as_two_uploads_come_and_go():
    # 8 Mbit/s for a second, then 2: alone until 0.5 s 4 Mbit are through, and both halves of 4 Mbit until 1 s leave the
    # first 1 Mbit at 1 Mbit/s, until 2 s; then the second sends its last 2 Mbit at 2 Mbit/s.
    table = one_capacity_table("x", np.array([0.0, 1.0]), np.array([8e6, 2e6]), np.inf, False)
    ends = play("reshared", 1e6, [0.0, 0.5], [7e6, 5e6], [1.0, 1.0], [1.0, 1.0], link=RecordedLink(table, 1e6))
    assert ends == [(pytest.approx(2.0), pytest.approx(7e6), True), (pytest.approx(3.0), pytest.approx(5e6), True)]


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_a_device_that_leaves_frees_its_share_only_where_it_is_shared(sharing):
    # Half the band each; the first leaves at 0.5 s.
    ends = play(sharing, 1e6, [0.0, 0.0], [1e7, 1e7], [1e9, 1e9], [5e5, 5e5], [0.5, np.inf])
    half, whole = (float(rate_bps(hz, 1e9 * NOISE_W_PER_HZ, NOISE_W_PER_HZ)) for hz in (5e5, 1e6))
    assert ends[0] == (0.5, pytest.approx(0.5 * half), False)
    later = half if sharing == "reserved" else whole
    assert ends[1][0] == pytest.approx(0.5 + (1e7 - 0.5 * half) / later)


def alone(kind, seconds, deadline_s, tolerance_s, drop_s=np.inf):
    """An upload of so many seconds at 1 MHz, whether it went through, and when."""
    clock, link, ended = Clock(), ShannonLink(NOISE_W_PER_HZ), []
    band = SharedBand(clock, 1e6, link) if kind == "reshared" else ReservedBand(clock, link)
    bits = rate_bps(1e6, 1e-12, NOISE_W_PER_HZ).item() * seconds
    upload = Upload(0, 1e-12, 1e6, bits, deadline_s, tolerance_s, 0.0)
    band.begin(upload, lambda through: ended.append((through, clock.now)))
    clock.call_at(drop_s, EventKind.LEFT, lambda _: band.drop(upload))
    clock.run(2.0)
    return upload, bits, *ended[0]


@pytest.mark.parametrize("kind", ["reserved", "reshared"])
def test_an_upload_is_cut_off_unless_what_is_left_takes_less_than_rounding(kind):
    for before_s, goes_through in ((0.5e-3, True), (2e-3, False)):
        upload, bits, through, _ = alone(kind, 1.0, np.inf, 1e-3, 1.0 - before_s)
        assert through == goes_through
        assert upload.sent_bits == pytest.approx(bits if through else bits * (1.0 - before_s))
        assert upload.sent_bits + upload.remaining_bits == pytest.approx(bits)


@pytest.mark.parametrize("kind", ["reserved", "reshared"])
def test_an_upload_that_ends_within_rounding_of_the_deadline_ends_at_it(kind):
    assert [alone(kind, seconds, 1.0, 1e-9)[-1] for seconds in (1.0 - 0.5e-9, 1.0 + 0.5e-9)] == [1.0, 1.0]
    assert alone(kind, 1.0 + 2e-9, 1.0, 1e-9)[-1] == pytest.approx(1.0 + 2e-9, abs=1e-12)
