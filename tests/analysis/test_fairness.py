import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.analysis.fairness import concentration, effective_devices, participations

counted = st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any)


@pytest.mark.parametrize(
    ("counts", "curve", "effective"),
    [
        ([3, 3, 3, 3], [0.25, 0.5, 0.75, 1], 4),
        ([0, 5, 0, 0], [1, 1, 1, 1], 1),
        ([2, 0, 2, 0], [0.5, 1, 1, 1], 2),
        ([3, 1, 0, 0], [0.75, 1, 1, 1], 1.6),
        ([0, 0, 0, 0], [0, 0, 0, 0], 0),
    ],
)
def test_the_curve_and_the_number_of_devices_as_uneven(counts, curve, effective):
    """Devices that never took part count too."""
    updates = pd.DataFrame({"device": np.repeat(np.arange(4), counts)})
    assert participations(updates, pd.DataFrame({"device": [*range(4)] * 2})).tolist() == counts
    assert concentration(np.array(counts)).tolist() == curve
    assert effective_devices(np.array(counts)) == pytest.approx(effective)


@given(counted, st.integers(0, 5), st.integers(1, 9))
def test_idle_devices_and_longer_runs_change_nothing(counts, idle, times):
    found = effective_devices(np.array(counts))
    assert effective_devices(np.array(counts + [0] * idle) * times) == pytest.approx(found)
    assert 1 - 1e-12 <= found <= np.count_nonzero(counts) + 1e-9
