import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from interval_rows import rows
from refusals import in_one_line

from edgesim.devices.profile import Profile
from edgesim.traces.readers.fedscale import read_fedscale


def dumped(folder: Path, value: object, protocol: int = 4) -> Path:
    path = folder / "client_trace"
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def client(active: list, inactive: list, finish_time: object = 1000) -> dict:
    return {"duration": 1, "inactive": inactive, "finish_time": finish_time, "active": active, "model": "X"}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_active_to_inactive_is_a_period_by_device_and_its_own_length(protocol, tmp_path):
    # Empty periods are dropped, touching ones merged, what lies behind finish_time never comes; keys give the order.
    behaviour = {
        7: client([5], [9], 500),
        1: client([0, 20, 30, 50, np.int64(60)], [10, 30, 40, 50, 70]),
        3: client([990], [1010]),
        4: client([], []),
    }
    found = read_fedscale(dumped(tmp_path, behaviour, protocol))
    made = found.available
    assert rows(found) == [(0, 0, 10), (0, 20, 40), (0, 60, 70), (1, 990, 1000), (3, 5, 9)]
    assert made.length_s.tolist() == [1000, 1000, 1000, 500]
    assert (made.keys.tolist(), made.models.tolist()) == (["1", "3", "4", "7"], ["X"] * 4)
    assert found.observed is None
    assert found.cut == 1


def test_a_capacity_is_three_inferences_per_training_sample_and_kilobits(tmp_path):
    capacity = {
        2: {"computation": 39, "communication": np.float64(18437.5)},
        1: {"computation": 162.0, "communication": 5648.1},
    }
    found = read_fedscale(dumped(tmp_path, capacity))
    assert isinstance(found, Profile)
    assert found.s_per_sample == pytest.approx([0.486, 0.117])
    assert found.link_bps == pytest.approx([5_648_100.0, 18_437_500.0])
    assert found.keys.tolist() == ["1", "2"]


def test_a_phone_of_50_ms_per_inference_trains_24_images_in_3_6_seconds(tmp_path):
    """feddance.md, oracle T12: 3 x 24 x 1 x 50 ms."""
    found = read_fedscale(dumped(tmp_path, {1: {"computation": 50, "communication": 1e4}}))
    assert 24 * found.s_per_sample == pytest.approx([3.6])


class _Shell:
    def __reduce__(self):
        return os.system, ("touch never",)


def test_a_pickle_that_names_a_class_is_refused_by_name_and_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with in_one_line(r"client_trace: not a pickle of plain data: asks for (posix|nt)\.system"):
        read_fedscale(dumped(tmp_path, {1: _Shell()}))
    with in_one_line(r"asks for numpy.*_reconstruct, but only containers, numbers and strings"):
        read_fedscale(dumped(tmp_path, {1: {"active": np.arange(3)}}))
    assert [path.name for path in tmp_path.iterdir()] == ["client_trace"]


def test_a_truncated_pickle_is_one_line(tmp_path):
    path = dumped(tmp_path, {1: client([0], [4])})
    whole = path.read_bytes()
    for length in (1, 20, len(whole) - 2):
        path.write_bytes(whole[:length])
        with in_one_line(r"client_trace: not a pickle of plain data: \S+"):
            read_fedscale(path)
