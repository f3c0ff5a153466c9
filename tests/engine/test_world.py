"""What the world says of the radio: averages to plan with, draws to live with."""

import numpy as np
import pytest

from edgesim.base.arrays import Floats, Integers
from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.engine.world import World
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
