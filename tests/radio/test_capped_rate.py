"""The SNR gap and the cap of spectral efficiency, against solvers that know nothing of Lambert W."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from whole_runs import TIMED, play

from edgesim.radio.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.radio.environment import load_environment
from edgesim.radio.link import ShannonLink

NOISE_W_PER_HZ = 4e-21

payloads = st.floats(1e4, 1e9)
times = st.floats(1e-2, 1e3)
efficiencies = st.floats(0.05, 25.0)
caps = st.floats(0.1, 12.0)
gaps_db = st.floats(0.0, 12.0)


def plain_rate_bps(bandwidth_hz: float, power_w: float, gap_db: float, cap: float) -> float:
    """As the environment's docstring has it, term by term."""
    snr = power_w / (NOISE_W_PER_HZ * bandwidth_hz)
    return bandwidth_hz * min(np.log2(1 + snr / 10 ** (gap_db / 10)), cap)


def power_for(payload: float, time_s: float, efficiency: float, gap_db: float) -> float:
    """Received power with which an uncapped upload needs payload / (time x efficiency) hertz."""
    return payload / (time_s * efficiency) * NOISE_W_PER_HZ * 10 ** (gap_db / 10) * (2**efficiency - 1)


@given(payloads, times, efficiencies, caps, gaps_db)
def test_the_least_bandwidth_of_a_capped_link_agrees_with_brentq(payload, time_s, efficiency, cap, gap_db):
    power_w = power_for(payload, time_s, efficiency, gap_db)
    link = ShannonLink(NOISE_W_PER_HZ * 10 ** (gap_db / 10), cap)
    zeros = np.zeros(1)
    need_hz = link.least_hz(zeros.astype(int), np.array([payload]), zeros, time_s, np.array([power_w]), 0.0)[0]
    root_hz = brentq(
        lambda hz: plain_rate_bps(hz, power_w, gap_db, cap) * time_s / payload - 1,
        payload / time_s * 1e-3,
        payload / time_s * 1e3,
        xtol=1e-300,
        rtol=1e-14,
    )
    assert need_hz == pytest.approx(root_hz, rel=1e-9)


@given(st.floats(1.0, 1e9), st.floats(1e-18, 1e-6), caps, st.floats(1.01, 50.0))
def test_the_capped_rate_rises_with_the_band_and_never_exceeds_cap_or_shannon(bandwidth_hz, power_w, cap, factor):
    narrow, wide = rate_bps([bandwidth_hz, bandwidth_hz * factor], power_w, NOISE_W_PER_HZ, cap)
    assert narrow <= cap * bandwidth_hz * (1 + 1e-12)
    assert narrow <= rate_bps(bandwidth_hz, power_w, NOISE_W_PER_HZ)
    assert narrow * (1 - 1e-12) <= wide <= narrow * factor * (1 + 1e-12)


def test_no_time_or_no_power_still_takes_infinite_bandwidth_below_a_cap():
    assert min_bandwidth_hz(1e6, [0.0, -1.0, 1.0], [1e-10, 1e-10, 1e-30], NOISE_W_PER_HZ, 5.0).tolist() == [np.inf] * 3


def test_every_question_to_a_capped_link_rests_on_one_rate():
    link, power_w, hz = ShannonLink(NOISE_W_PER_HZ * 1.25, 5.0), np.array([1e-15, 1e-9]), np.array([2e5, 2e5])
    rates = [plain_rate_bps(2e5, power, 10 * np.log10(1.25), 5.0) for power in power_w]
    assert rates[0] < 1e6 == pytest.approx(rates[1])
    each = link.rates(hz, power_w)
    assert link.bits_each(each, 1.0, 3.0) == pytest.approx([2 * rate for rate in rates])
    assert link.end_each_s(each, np.array(rates), 1.0) == pytest.approx([2.0, 2.0])
    assert link.mean_bps(np.arange(2), 2e5, power_w, 1.0, 3.0) == pytest.approx(rates)
    for power, rate in zip(power_w.tolist(), rates, strict=True):
        assert link.bits(0, 2e5, power, 1.0, 3.0) == pytest.approx(2 * rate)
        assert link.end_s(0, 2e5, power, rate, 1.0) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["uma", "umi-street-canyon", "inh-office"])
def test_the_laws_of_38_901_have_nrs_highest_rate_below_256qam_and_lte_s_gap(name):
    link = load_environment(name).link()
    assert link.max_bps_per_hz == pytest.approx(6 * 948 / 1024, abs=5e-5)
    # -174 dBm/Hz, noise figure 5 dB, gap 1.25.
    assert link.noise_w_per_hz == pytest.approx(10 ** (-20.4 + 0.5) * 1.25, rel=1e-3, abs=0)


@pytest.mark.parametrize("name", ["fedteddi-macro", "free-space"])
def test_the_papers_cell_and_free_space_have_neither_gap_nor_cap(name):
    environment = load_environment(name)
    assert environment.link() == ShannonLink(environment.noise_w_per_hz, np.inf)


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_no_upload_of_a_run_exceeds_the_cap_and_those_near_the_station_reach_it(tmp_path, sharing):
    radio = {"channel": "uma", "sharing": sharing}
    uploads = play(tmp_path, TIMED, devices={"count": 40}, radio=radio, round={"payload_bits": 4e6}, rounds=5).uploads
    efficiency = uploads["bits"] / (uploads["bandwidth_hz"] * (uploads["t_end_s"] - uploads["t_start_s"]))
    assert efficiency.max() == pytest.approx(5.5547, rel=1e-9)
    assert (uploads["outcome"] == "done").all()
    assert len(uploads) > 50
