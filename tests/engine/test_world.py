"""What the world says of the radio: averages to plan with, draws to live with."""

import numpy as np
import pytest
from whole_runs import TIMED, merged, play

from edgesim.base.arrays import Floats, Integers
from edgesim.base.content import find
from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.engine.world import World
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

EVERYONE = np.arange(2000)


def world(seed: int = 0, **radio: object) -> World:
    data = {"data": {"partition": "fedteddi"}, "learning": {"pretrain": True}}
    return make_world(parse({"devices": {"count": 2000}, "radio": radio} | data, "test").resolved(), Streams(seed))


def gain(here: World, ids: Integers, round: int) -> Floats:
    return here.gain(ids, round, 0.0, here.places.stations(ids, 0.0))


def drawn_w(here: World, ids: Integers, round: int) -> Floats:
    return here.drawn_rx_power_w(ids, round, gain(here, ids, round))


@pytest.mark.parametrize("channel", ["fedteddi-macro", "free-space", "uma", "umi-street-canyon", "inh-office"])
def test_a_devices_power_is_the_same_whoever_else_is_asked_about(channel: str) -> None:
    here = world(channel=channel, fading="rayleigh")
    some = np.array([1999, 0, 77, 512])
    assert gain(here, some, 4).tolist() == gain(here, EVERYONE, 4)[some].tolist()
    assert drawn_w(here, some, 4).tolist() == drawn_w(here, EVERYONE, 4)[some].tolist()


@pytest.mark.parametrize(
    ("density_dbm_per_hz", "figure_db"), [(-174.0, 0.0), (-174.0, 6.0), (-168.0, 0.0), (-170.0, 9.0)]
)
@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_uploads_meet_the_noise_density_and_figure_of_the_channel_file(
    tmp_path, sharing, density_dbm_per_hz, figure_db
):
    """The bits of one lone upload are those of Shannon's formula with n = 10^((density + figure - 30) / 10) W/Hz."""
    text = find("channels", "fedteddi-macro", ".toml").read_text()
    path = tmp_path / "noisy.toml"
    text = text.replace("noise_dbm_per_hz = -174.0", f"noise_dbm_per_hz = {density_dbm_per_hz}")
    path.write_text(text.replace("noise_figure_db = 0.0", f"noise_figure_db = {figure_db}"))
    values = {
        "rounds": 3,
        "devices": {"count": 5},
        "radio": {"channel": str(path), "sharing": sharing},
        "round": {"payload_bits": 1e6, "admission": "count", "count": 1, "leftover": "equal_finish"},
    }
    config = simulation.complete(parse(merged(TIMED, values), "test"))
    uploads = play(tmp_path / "run", TIMED, values).uploads
    here = make_world(config, Streams(config.seed))
    assert len(uploads) == 3
    noise_w_per_hz = 10 ** ((density_dbm_per_hz + figure_db - 30) / 10)
    for row in uploads.itertuples():
        power_w = drawn_w(here, np.array([row.device]), row.round)[0]
        bps = row.bandwidth_hz * np.log2(1 + power_w / (row.bandwidth_hz * noise_w_per_hz))
        assert bps * (row.t_end_s - row.t_start_s) == pytest.approx(row.bits, rel=1e-9)
