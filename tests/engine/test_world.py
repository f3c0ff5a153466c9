"""What the world says of the radio: averages to plan with, draws to live with."""

import numpy as np
import pytest

from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.streams import Streams


@pytest.mark.parametrize("channel", ["fedteddi-macro", "free-space", "uma", "umi-street-canyon", "inh-office"])
def test_a_devices_power_is_the_same_whoever_else_is_asked_about(channel):
    radio = {"channel": channel, "fading": "rayleigh"}
    sections = {"devices": {"count": 2000}, "radio": radio, "data": {"partition": "fedteddi"}}
    here = make_world(parse(sections, "test").resolved(), Streams(0))
    some, everyone = np.array([1999, 0, 77, 512]), np.arange(2000)
    gains = [here.gain(ids, 4, 0.0, here.places.stations(ids, 0.0)) for ids in (some, everyone)]
    powers_w = [here.drawn_rx_power_w(ids, 4, gain) for ids, gain in zip((some, everyone), gains, strict=True)]
    for few, all_of_them in (gains, powers_w):
        assert few.tolist() == all_of_them[some].tolist()
