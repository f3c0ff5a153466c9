"""``round.outage``: uploads planned on the gain that fading falls below with a probability, and the draw decides."""

import golden
import numpy as np
import pytest
from scipy.optimize import brentq
from whole_runs import TIMED, configs, play

from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.engine.make_world import make_world
from edgesim.radio.environment import load_environment
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

CELL = {"rounds": 40, "devices": {"count": 60}, "radio": {"fading": "rayleigh"}, "round": {"payload_bits": 1e6}}
config = configs(TIMED | CELL)
MEAN = 1 - np.exp(-1)
"""Probability of fading below its mean."""


@pytest.mark.parametrize(
    ("knobs", "radio", "low", "high"),
    [
        ({"outage": 0.05}, {}, 0.05, 0.05),
        ({"outage": 0.2}, {}, 0.2, 0.2),
        ({"outage": 0.5}, {}, 0.5, 0.5),
        ({}, {}, MEAN, MEAN),
        # Above the cap a fade costs nothing until it takes the upload below, and some have more than their least
        # bandwidth: the probability is a bound then.
        ({"outage": 0.2}, {"channel": "umi-street-canyon"}, 0.0, 0.2),
        ({"outage": 0.1, "tmax_s": 2.0, "leftover": "equal_finish"}, {}, 0.0, 0.1),
        ({"outage": 0.1, "tmax_s": 2.0, "admission": "count", "count": 5}, {}, 0.0, 0.1),
        ({"outage": 0.1, "tmax_s": 2.0, "admission": "band", "allocator": "equal_share"}, {}, 0.0, 0.1),
    ],
    ids=str,
)
def test_of_reserved_uploads_the_planned_share_misses_the_deadline(tmp_path, knobs, radio, low, high):
    rounds = play(tmp_path, TIMED, CELL, round=knobs, radio=radio).rounds
    late, selected = rounds["late"].sum(), rounds["selected"].sum()
    assert selected >= 200
    assert late > 0
    error = np.sqrt(high * (1 - high) / selected)
    assert low - 4 * error * (low > 0) <= late / selected <= high + 4 * error


def test_least_bandwidths_are_those_of_a_solver_on_the_gain_of_the_quantile(tmp_path):
    """Rayleigh power falls below -ln(0.95) of its mean once in twenty; each reservation carries its bits at that."""
    uploads = play(tmp_path, TIMED, CELL, rounds=1, round={"outage": 0.05}).uploads.query("outcome == 'done'")
    world = make_world(simulation.complete(config(round={"outage": 0.05})), Streams(0))
    ids = uploads["device"].to_numpy()
    power_w = world.rx_power_w(ids, world.gain(ids, 1, 0.0, np.zeros(len(ids), dtype=int))) * -np.log(0.95)
    hz = uploads["bandwidth_hz"].to_numpy()
    bps = hz * np.log2(1 + power_w / (hz * 10**-20.4))
    assert uploads["t_start_s"].to_numpy() + 1e6 / bps == pytest.approx(np.ones(len(ids)), rel=1e-9)


def test_the_files_own_fading_is_fading_enough(tmp_path):
    path = tmp_path / "fading.toml"
    path.write_text(find("channels", "uma", ".toml").read_text().replace('fading = "none"', 'fading = "rayleigh"'))
    radio = {"channel": str(path), "fading": None}
    made = make_world(simulation.complete(config(round={"outage": 0.05}, radio=radio)), Streams(0))
    assert made.outage_factor == pytest.approx(-np.log(0.95), rel=1e-12, abs=0)
    assert load_environment(str(path)).fading == "rayleigh"


COUNT = {"admission": "count", "count": 3}
NO_FADING = {"fading": None}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("knobs", "radio", "said"),
    [
        ({"outage": 0.0}, {}, r"round\.outage: input should be greater than 0"),
        ({"outage": 1.0}, {}, r"round\.outage: input should be less than 1"),
        ({}, {"fading": "none"}, r"round\.outage = 0\.05 does not go with radio\.fading = 'none'"),
        ({}, {"sharing": "own"}, r"round\.outage = 0\.05 needs radio\.sharing = 'reserved' or 'reshared',"),
        (COUNT | {"allocator": "equal_share"}, {}, r"outage = 0\.05 with round\.admission = 'count' needs round\.all"),
        (COUNT | {"protocol": "buffered"}, {}, r"protocol = 'buffered' does not go with round\.outage = 0\.05"),
        ({}, NO_FADING | {"channel": "fedteddi-macro"}, r"'fedteddi-macro' does not go with round\.outage = "),
        ({}, NO_FADING | {"channel": "recorded-capacity"}, r"'recorded-capacity' does not go with round\.outage = "),
        ({"outage": 0.001, "payload_bits": 2e8}, {}, r"with round\.outage = 0\.001 uploads are planned on 0\.001 "),
    ],
    ids=str,
)  # fmt: skip
def test_an_outage_that_means_nothing_is_refused_before_anything_is_written(tmp_path, knobs, radio, said):
    devices = {"links": {"file": "links.parquet"}} if "sharing" in radio else {}
    with pytest.raises(EdgesimError, match=said):
        play(tmp_path / "run", TIMED, CELL, round={"outage": 0.05} | knobs, radio=radio, devices=devices)
    assert not (tmp_path / "run").exists() or "payload_bits" in knobs


def least_hz(seconds: float, snr_hz: float) -> float:
    """Bandwidth that carries the golden round's megabit in a time, by a root finder."""
    return brentq(lambda hz: hz * np.log2(1 + snr_hz / hz) * seconds - 1e6, 1e3, 1e9, rtol=1e-13)


def test_the_common_finish_is_planned_on_the_gain_of_the_quantile(tmp_path):
    """In the golden round: the finish at which both uploads fill 500 kHz when p / n is -ln(0.6) of its mean."""
    fading = {"radio": {"fading": "rayleigh"}}
    uploads = golden.play(tmp_path, [0, 1], sections=fading, outage=0.4, leftover="equal_finish").uploads
    snr_hz = 1e8 * -np.log(0.6)
    both_hz = lambda end_s: least_hz(end_s - 0.2, snr_hz) + least_hz(end_s - 0.5, snr_hz)  # noqa: E731
    end_s = brentq(lambda end_s: both_hz(end_s) - 5e5, 0.75, 1.0, xtol=1e-13)
    planned_hz = [least_hz(end_s - 0.2, snr_hz), least_hz(end_s - 0.5, snr_hz)]
    assert uploads["bandwidth_hz"].tolist() == pytest.approx(planned_hz, rel=1e-8)
