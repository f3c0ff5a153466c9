import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.learning.back_ends.schedule import make_schedule


@given(st.integers(1, 200), st.integers(1, 32))
def test_a_client_whose_samples_are_all_hit_has_a_share_of_one_and_not_more(size, batch):
    schedule = make_schedule([np.append(np.arange(0, size, batch), size)])
    (share,) = schedule.hit_share(np.ones(len(schedule.places), dtype=bool))
    assert 1 - 1e-12 < share <= 1
