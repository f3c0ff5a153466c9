import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.analysis.energy_use import energy_by_activity_j, energy_by_device_j, energy_j

ROWS = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.integers(0, 6),
        st.sampled_from(["download", "compute", "upload"]),
        st.floats(0, 1e3),
    ),
    max_size=30,
)


@settings(max_examples=40)
@given(ROWS, st.lists(st.floats(0, 1e3), max_size=6))
def test_energy_adds_up_to_the_same_over_activities_rounds_and_devices(rows, idle):
    table = pd.DataFrame(rows, columns=["round", "device", "activity", "energy_j"]).astype({"energy_j": float})
    everyone = pd.DataFrame({"device": [*range(7), *range(7)]})  # one row per device and frame
    metrics = pd.DataFrame(
        [(1, "miss_rate", "", 7.0), *((2 + n, "idle_j", "", joules) for n, joules in enumerate(idle))],
        columns=["round", "name", "key", "value"],
    )
    assert energy_j(table, metrics) == pytest.approx(sum(row[3] for row in rows) + sum(idle))
    by_activity = energy_by_activity_j(table, metrics)
    by_device = energy_by_device_j(table, metrics, everyone)
    whole = sum(row[3] for row in rows) + sum(idle)
    assert list(by_activity.columns) == ["download", "compute", "upload", "idle"]
    assert by_activity["idle"].sum() == pytest.approx(sum(idle))
    assert by_activity.to_numpy().sum() == pytest.approx(whole)
    assert by_device.shape == (7,)
    assert by_device.sum() == pytest.approx(whole)
    for device in range(7):
        assert by_device[device] == pytest.approx(sum(row[3] for row in rows if row[1] == device) + sum(idle) / 7)
    for number in by_activity.index:
        spent = sum(row[3] for row in rows if row[0] == number and row[2] == "compute")
        assert by_activity.loc[number, "compute"] == pytest.approx(spent)
