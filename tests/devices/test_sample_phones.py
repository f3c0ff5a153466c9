from pathlib import Path

import numpy as np
import pytest

from edgesim.devices.profile import read_profile
from edgesim.devices.sample_phones import DEVICES, generated_phones
from edgesim.streams import Streams

SHIPPED = Path(__file__).parents[2] / "traces" / "sample-phones.parquet"


def test_the_shipped_phones_are_what_their_generator_writes():
    shipped, made = read_profile(SHIPPED), generated_phones(DEVICES, Streams(0))
    assert shipped.s_per_sample == pytest.approx(made.s_per_sample, rel=1e-12)
    assert shipped.link_bps == pytest.approx(made.link_bps, rel=1e-12)


def test_speeds_and_links_have_the_spread_of_fedscales_phones():
    phones = generated_phones(20_000, Streams(1))
    assert phones.link_bps is not None
    for values, middle, spread in ((phones.s_per_sample, 0.1812, 0.88), (phones.link_bps, 6.5e6, 1.17)):
        assert np.exp(np.log(values).mean()) == pytest.approx(middle, rel=0.03)
        assert np.log(values).std() == pytest.approx(spread, rel=0.03)
