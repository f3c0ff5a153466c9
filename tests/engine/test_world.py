"""What the world says of the radio: averages to plan with, draws to live with."""

import numpy as np
import pytest

from edgesim.config import parse
from edgesim.engine.world import World
from edgesim.simulation import make_world
from edgesim.streams import Streams

EVERYONE = np.arange(2000)


def world(seed: int = 0, **radio: object) -> World:
    return make_world(parse({"devices": {"count": 2000}, "radio": radio}, "test").resolved(), Streams(seed))


def test_without_fading_an_upload_lives_with_the_average() -> None:
    still = world()
    assert still.drawn_rx_power_w(EVERYONE, 3).tolist() == still.rx_power_w(EVERYONE, 3).tolist()


def test_fading_changes_the_upload_but_not_the_plan() -> None:
    still, fading = world(), world(fading="rayleigh")
    assert fading.rx_power_w(EVERYONE, 3).tolist() == still.rx_power_w(EVERYONE, 3).tolist()
    factor = fading.drawn_rx_power_w(EVERYONE, 3) / fading.rx_power_w(EVERYONE, 3)
    # Exp(1) lies below its mean with probability 1 - 1/e.
    share = 1 - np.exp(-1)
    assert np.mean(factor < 1) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / len(EVERYONE)))


def test_the_config_overrides_the_fading_of_the_file() -> None:
    config = parse({"devices": {"count": 5}, "radio": {"fading": "none"}}, "test").resolved()
    made = make_world(config, Streams(0))
    rayleigh = made.environment.model_copy(update={"fading": "rayleigh"})
    ids = np.arange(5)
    off = World(config, made.streams, made.population, rayleigh, made.availability)
    assert off.drawn_rx_power_w(ids, 1).tolist() == off.rx_power_w(ids, 1).tolist()
    left_open = config.model_copy(update={"radio": config.radio.model_copy(update={"fading": None})})
    on = World(left_open, made.streams, made.population, rayleigh, made.availability)
    assert not set(on.drawn_rx_power_w(ids, 1).tolist()) & set(on.rx_power_w(ids, 1).tolist())


@pytest.mark.parametrize("channel", ["fedteddi-macro", "free-space", "uma", "umi-street-canyon", "inh-office"])
def test_a_devices_power_is_the_same_whoever_else_is_asked_about(channel: str) -> None:
    here = world(channel=channel, fading="rayleigh")
    some = np.array([1999, 0, 77, 512])
    assert here.gain(some, 4).tolist() == here.gain(EVERYONE, 4)[some].tolist()
    assert here.drawn_rx_power_w(some, 4).tolist() == here.drawn_rx_power_w(EVERYONE, 4)[some].tolist()
