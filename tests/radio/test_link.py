import numpy as np
import pytest

from edgesim.radio.capacity import one_capacity_table
from edgesim.radio.link import RecordedLink, ShannonLink

IDS = np.arange(3)
RX_W = np.array([1e-12, 3e-11, 2e-10])


def test_the_mean_rate_of_a_shannon_link_is_the_one_that_uploads_live_with():
    link = ShannonLink(1e-20)
    bps = link.mean_bps(IDS, 2e5, RX_W, 3.0, 4.0)
    ends_s = [link.end_s(0, 2e5, power_w, 1e6, 3.0) for power_w in RX_W.tolist()]
    assert 3.0 + 1e6 / bps == pytest.approx(ends_s, rel=1e-12)


def test_the_mean_rate_of_a_recorded_link_carries_what_was_recorded():
    table = one_capacity_table("test", np.array([0.0, 1.0, 3.0]), np.array([1e6, 5e6, 2e6]), 4.0, False)
    link = RecordedLink(table, 20e6)
    # From 0.5 to 3.5 s the whole band carries 0.5 + 10 + 1 Mbit; a quarter of it a quarter of that.
    assert link.mean_bps(IDS, 5e6, RX_W, 0.5, 3.5) == pytest.approx([11.5e6 / 4 / 3] * 3)
