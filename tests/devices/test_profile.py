import re
from pathlib import Path

import numpy as np
import pytest

from edgesim.base.device_keys import DeviceKeys, texts
from edgesim.base.errors import EdgesimError
from edgesim.config import DevicesConfig
from edgesim.config_file import parse
from edgesim.devices.population import make_population
from edgesim.devices.profile import Profile, read_profile, write_profile


def csv(folder: Path, body: str) -> Path:
    path = folder / "speed.csv"
    path.write_text(body if body.startswith("device") else f"device,s_per_sample,link_bps\n{body}")
    return path


def test_device_k_of_a_run_is_device_k_of_the_profile_whatever_the_order_of_rows(tmp_path):
    path = csv(tmp_path, "2,0.3,1e6\n0,0.1,2e6\n1,0.2,3e6\n")
    devices = make_population(DevicesConfig(count=2, profile=str(path)))
    assert devices.a_s.tolist() == [0.1, 0.2]
    assert devices.mu_per_s.tolist() == [np.inf, np.inf]


def test_a_profile_is_read_back_as_it_was_written(tmp_path):
    keys, models = texts(["7", "12"]), texts(["P20", ""])
    made = Profile(np.array([0.1, 0.25]), np.array([1e6, 2e6]), np.array([2e9, 3e9]), keys, models, guessed=1)
    write_profile(tmp_path / "speed.parquet", made)
    found = read_profile(tmp_path / "speed.parquet")
    assert found.link_bps is not None
    assert found.clock_hz is not None
    assert found.clock_hz.tolist() == [2e9, 3e9]
    assert (found.s_per_sample.tolist(), found.link_bps.tolist()) == ([0.1, 0.25], [1e6, 2e6])
    assert (found.keys.tolist(), found.models.tolist(), found.guessed) == (["7", "12"], ["P20", ""], 1)


def test_devices_are_found_by_their_keys_and_in_a_profile_without_keys_by_their_place(tmp_path):
    path = tmp_path / "speed.csv"
    path.write_text("device,s_per_sample,key\n2,0.3,c\n0,0.1,a\n1,0.2,b\n")
    config, keys = DevicesConfig(count=2, profile=str(path)), DeviceKeys(texts(["c", "b"]), "phones.parquet")
    assert make_population(config, keys).a_s.tolist() == [0.3, 0.2]
    # Links are found by the profile's keys where the availability recording has none.
    alone = make_population(config)
    assert (alone.a_s.tolist(), alone.keys.keys.tolist()) == ([0.1, 0.2], ["a", "b"])
    by_place = make_population(config.model_copy(update={"match": "position"}), keys)
    assert (by_place.a_s.tolist(), by_place.keys) == ([0.1, 0.2], None)
    path.write_text("device,s_per_sample\n0,0.1\n1,0.2\n")
    without = make_population(config, keys)
    assert (without.a_s.tolist(), without.keys) == ([0.1, 0.2], keys)


def test_a_processor_of_a_known_clock_spends_kappa_f_squared_on_every_cycle(tmp_path):
    path = tmp_path / "speed.csv"
    path.write_text("device,s_per_sample,clock_hz\n0,0.1,2e9\n1,0.2,1e9\n")
    # 1e-28 x (2e9)^2 J a cycle, 2e9 cycles a second: 0.8 W.
    devices = make_population(DevicesConfig(count=2, profile=str(path), compute_power_w=9.0))
    assert devices.compute_power_w.tolist() == pytest.approx([0.8, 0.1])
    devices = make_population(DevicesConfig(count=1, profile=str(path), kappa=2e-28))
    assert devices.compute_power_w.tolist() == pytest.approx([1.6])


def test_kappa_is_refused_where_no_clock_is_known(tmp_path):
    path = csv(tmp_path, "0,0.1,1e6\n")
    with pytest.raises(EdgesimError, match=r"speed\.csv: has no column clock_hz, which devices\.kappa needs"):
        make_population(DevicesConfig(count=1, profile=str(path), kappa=1e-28))
    with pytest.raises(EdgesimError, match=r"devices\.kappa = 1e-28 needs devices\.profile: it is for processors"):
        parse({"devices": {"kappa": 1e-28}}, "test")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("0,0.1,1e6\n1,0,1e6\n", "line 3: s_per_sample: expected a finite number above 0 (got 0)"),
        ("0,0.1,1e6\n1,,1e6\n", "line 3: s_per_sample: expected a finite number above 0 (got nan)"),
        ("0,0.1,0\n", "line 2: link_bps: expected a finite number above 0 (got 0)"),
        ("0,-0.1,1\n", "line 2: s_per_sample: expected a finite number above 0 (got -0.1)"),
        ("0,0.1,1\n0,0.1,1\n", "line 3: device: expected each device once (got 0)"),
        ("0,0.1,1\n2,0.1,1\n", "line 3: device: expected a whole number from 0 to 1, one for each row (got 2)"),
        ("0.5,0.1,1\n", "line 2: device: expected a whole number"),
        ("device,s_per_sample,key\n0,0.1,a\n1,0.1,\n", "line 3: key: expected the device's key (got nan)"),
        ("device,s_per_sample,key\n0,0.1,a\n1,0.1,a\n", "line 3: key: expected each key once (got a)"),
        ("", "holds no rows"),
    ],
)
def test_a_bad_row_is_refused_with_line_and_column(body, said, tmp_path):
    path = csv(tmp_path, body)
    with pytest.raises(EdgesimError, match=re.escape(f"{path}: {said}")):
        read_profile(path)


def test_a_profile_of_fewer_devices_than_the_run_is_refused(tmp_path):
    path = csv(tmp_path, "0,0.1,1\n")
    with pytest.raises(EdgesimError, match=r"speed\.csv: is a profile of 1 devices, but devices\.count is 2; lower"):
        make_population(DevicesConfig(count=2, profile=str(path)))
    with pytest.raises(
        EdgesimError, match=r"^devices\.profile: no file 'nowhere'; give a path or one of: sample-phones$"
    ):
        make_population(DevicesConfig(count=2, profile="nowhere"))
