"""``round.outage``: uploads planned on the gain that fading falls below with a probability, and the draw decides."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.folder.records import read_table
from edgesim.radio.environment import load_environment
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

_spec = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("test_golden_round.py"))
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)

SEEDS = 2


def config(seed: int = 0, round_: dict | None = None, devices: dict | None = None, **radio):
    return parse(
        {
            "seed": seed,
            "rounds": 40,
            "devices": {"count": 60, **(devices or {})},
            "radio": {"fading": "rayleigh", **radio},
            "round": {"payload_bits": 1e6, **(round_ or {})},
            "data": {"dataset": "none", "partition": "fedteddi"},
            "learning": {"training": "none", "pretrain": True},
        },
        "test",
    )


def missed(tmp_path, round_: dict, **radio) -> tuple[int, int]:
    """Uploads that missed the deadline, and all uploads, over some seeds."""
    late = selected = 0
    for seed in range(SEEDS):
        simulation.run(config(seed, round_, **radio), tmp_path / str(seed))
        rounds = read_table(tmp_path / str(seed), "rounds")
        late, selected = late + int(rounds["late"].sum()), selected + int(rounds["selected"].sum())
    return late, selected


@pytest.mark.parametrize("outage", [0.05, 0.2, 0.5])
def test_of_reserved_uploads_the_planned_share_misses_the_deadline(tmp_path, outage):
    late, selected = missed(tmp_path, {"outage": outage})
    assert selected > 1000
    assert late / selected == pytest.approx(outage, abs=4 * np.sqrt(outage * (1 - outage) / selected))


def test_without_it_all_miss_whose_fading_is_below_its_mean(tmp_path):
    late, selected = missed(tmp_path, {})
    share = 1 - np.exp(-1)
    assert late / selected == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / selected))


def test_an_outage_of_that_share_plans_on_the_mean_itself(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    simulation.run(config(), one)
    simulation.run(config(round_={"outage": 1 - np.exp(-1)}), other)
    bands = [read_table(folder, "rounds")["bandwidth_hz"].to_numpy() for folder in (one, other)]
    assert bands[0] == pytest.approx(bands[1], rel=1e-9)


def test_a_cap_leaves_the_share_below_the_outage_since_strong_uploads_have_room(tmp_path):
    """Above the cap a fade costs nothing until it takes the upload below: the probability is a bound then."""
    late, selected = missed(tmp_path, {"outage": 0.2}, channel="umi-street-canyon")
    assert 0 < late / selected < 0.2 + 4 * np.sqrt(0.16 / selected)


def test_least_bandwidths_are_those_of_a_solver_on_the_gain_of_the_quantile(tmp_path):
    """Rayleigh power falls below -ln(0.95) of its mean once in twenty; each reservation carries its bits at that."""
    simulation.run(config(round_={"outage": 0.05}), tmp_path / "run")
    world = make_world(simulation.complete(config(round_={"outage": 0.05})), Streams(0))
    uploads = read_table(tmp_path / "run", "activities").query("activity == 'upload' and outcome == 'done'")
    first = uploads[uploads["round"] == 1]
    ids = first["device"].to_numpy()
    power_w = world.rx_power_w(ids, world.gain(ids, 1, 0.0, np.zeros(len(ids), dtype=int))) * -np.log(0.95)
    hz = first["bandwidth_hz"].to_numpy()
    bps = hz * np.log2(1 + power_w / (hz * 10**-20.4))
    assert first["t_start_s"].to_numpy() + 1e6 / bps == pytest.approx(np.ones(len(first)), rel=1e-9)


@pytest.mark.parametrize(
    "round_",
    [
        {"leftover": "equal_finish"},
        {"admission": "count", "count": 5},
        {"admission": "band", "allocator": "equal_share"},
    ],
    ids=str,
)
def test_the_share_that_misses_is_at_most_the_outage_where_uploads_have_more_than_their_least(tmp_path, round_):
    late, selected = missed(tmp_path, {**round_, "outage": 0.1, "tmax_s": 2.0})
    assert selected >= 400
    assert 0 < late / selected <= 0.1 + 4 * np.sqrt(0.09 / selected)


def test_the_files_own_fading_is_fading_enough(tmp_path):
    path = tmp_path / "fading.toml"
    path.write_text(find("channels", "uma", ".toml").read_text().replace('fading = "none"', 'fading = "rayleigh"'))
    made = make_world(simulation.complete(config(round_={"outage": 0.05}, channel=str(path), fading=None)), Streams(0))
    assert made.outage_factor == pytest.approx(-np.log(0.95), rel=1e-12, abs=0)
    assert load_environment(str(path)).fading == "rayleigh"


@pytest.mark.parametrize(
    ("round_", "radio", "said"),
    [
        ({"outage": 0.0}, {}, "round.outage: input should be greater than 0"),
        ({"outage": 1.0}, {}, "round.outage: input should be less than 1"),
        ({"outage": 0.05}, {"fading": "none"}, r"round\.outage = 0\.05 does not go with radio\.fading = 'none'"),
        (
            {"outage": 0.05},
            {"sharing": "own"},
            r"round\.outage = 0\.05 needs radio\.sharing = 'reserved' or 'reshared',",
        ),
        (
            {"outage": 0.05, "admission": "count", "count": 3, "allocator": "equal_share"},
            {},
            r"round\.outage = 0\.05 with round\.admission = 'count' needs round\.all",
        ),
        (
            {"outage": 0.05, "protocol": "buffered", "admission": "count", "count": 3},
            {},
            r"round\.protocol = 'buffered' does not go with round\.outage = 0\.05",
        ),
    ],
    ids=str,
)
def test_an_outage_that_means_nothing_is_refused(round_, radio, said):
    links = {"links": {"file": "links.parquet"}} if "sharing" in radio else None
    with pytest.raises(EdgesimError, match=said):
        simulation.complete(config(round_=round_, devices=links, **radio))


@pytest.mark.parametrize("channel", ["fedteddi-macro", "recorded-capacity"])
def test_an_environment_without_fading_refuses_it_before_anything_is_written(tmp_path, channel):
    settings = config(round_={"outage": 0.05}, channel=channel, fading=None)
    with pytest.raises(EdgesimError, match=rf"radio\.channel = '{channel}' does not go with round\.outage = "):
        simulation.run(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_plan_that_serves_nobody_says_that_the_outage_is_part_of_it(tmp_path):
    with pytest.raises(
        EdgesimError, match=r"with round.outage = 0.001 uploads are planned on 0.001 of the average gain"
    ):
        simulation.run(config(round_={"outage": 0.001, "payload_bits": 2e8}), tmp_path / "run")


def least_hz(seconds: float, snr_hz: float) -> float:
    """Bandwidth that carries the golden round's megabit in a time, by a root finder."""
    return brentq(lambda hz: hz * np.log2(1 + snr_hz / hz) * seconds - 1e6, 1e3, 1e9, rtol=1e-13)


def test_the_common_finish_is_planned_on_the_gain_of_the_quantile(tmp_path):
    """In the golden round: the finish at which both uploads fill 500 kHz when p / n is -ln(0.6) of its mean."""
    _, activities = golden.play(tmp_path, [0, 1], radio={"fading": "rayleigh"}, outage=0.4, leftover="equal_finish")
    snr_hz = 1e8 * -np.log(0.6)
    both_hz = lambda end_s: least_hz(end_s - 0.2, snr_hz) + least_hz(end_s - 0.5, snr_hz)  # noqa: E731
    end_s = brentq(lambda end_s: both_hz(end_s) - 5e5, 0.75, 1.0, xtol=1e-13)
    planned_hz = [least_hz(end_s - 0.2, snr_hz), least_hz(end_s - 0.5, snr_hz)]
    assert activities.query("activity == 'upload'")["bandwidth_hz"].tolist() == pytest.approx(planned_hz, rel=1e-8)


def test_a_policy_that_asks_how_long_uploads_take_hears_it_for_the_gain_planned_on(tmp_path, monkeypatch):
    heard = []

    class Asks(golden.InOrder):
        def choose(self, view):
            heard.append(view.estimates.upload_s(np.arange(3), 1))
            return super().choose(view)

    monkeypatch.setattr(golden, "InOrder", Asks)
    golden.play(tmp_path, [0], radio={"fading": "rayleigh"}, outage=0.2)
    assert heard[0] == pytest.approx([1e6 / (5e5 * np.log2(1 - 1e8 * np.log(0.8) / 5e5))] * 3)
