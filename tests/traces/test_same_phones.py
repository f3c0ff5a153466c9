"""Availability, speed and link of one recorded phone stay together, whatever its place in each file."""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import in_one_line
from whole_runs import TIMED, play

from edgesim.base.device_keys import DeviceKeys, texts
from edgesim.base.errors import EdgesimError
from edgesim.traces.convert import convert
from edgesim.traces.convert_links import convert_links

HOUR_S = 3600.0
ONLINE_S = {2: [(0, 3000)], 5: [(0, 1000), (2000, 3600)], 9: [(500, 3500)]}
"""FedScale's keys have gaps."""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Three phones of ten whose speeds are known: phone k takes k / 100 s a sample and sends k Mbit/s."""
    behaviour = {
        key: {
            "active": [a for a, _ in spans],
            "inactive": [b for _, b in spans],
            "finish_time": 3600,
            "model": f"M{key}",
        }
        for key, spans in ONLINE_S.items()
    }
    # Inference takes a third of training.
    capacity = {key: {"computation": key * 10 / 3, "communication": 1000.0 * key} for key in range(10, 0, -1)}
    (tmp_path / "uplinks").mkdir()
    for key in range(1, 11):
        (tmp_path / "uplinks" / f"{key}.csv").write_text(f"t_s,bps\n0,{1e6 * key}\n1,{1e6 * key}\n")
    for name, content in (("behaviour", behaviour), ("capacity", capacity)):
        (tmp_path / name).write_bytes(pickle.dumps(content))
        convert(tmp_path / name, tmp_path / f"{name}.parquet")
    # By name: 1, 10, 2, ...
    convert_links([tmp_path / "uplinks"], tmp_path / "uplinks.parquet", length_s=2.0)
    return {name: str(tmp_path / f"{name}.parquet") for name in ("behaviour", "capacity", "uplinks")}


def run(folder: Path, files: dict[str, str], order: str = "given", **devices: Any) -> pd.DataFrame:
    """What devices 0, 1 and 2 did in an hour of rounds of 100 s: 20 samples and 1 Mbit each."""
    config = {
        "stop_at_s": HOUR_S,
        "devices": {"count": 3, "profile": files["capacity"], **devices},
        "radio": {"sharing": "own"},
        "availability": {"model": "table", "file": files["behaviour"], "after_end": "wrap", "order": order},
        "round": {
            "tmax_s": 100.0, "payload_bits": 1e6, "computes": "selected", "admission": "count", "count": 3,
            "close": "deadline",
        },
        "learning": {"steps": 2, "batch_size": 10},
    }  # fmt: skip
    return play(folder, TIMED, config).activities


def phones(activities: pd.DataFrame) -> list[tuple[int, int, int]]:
    """Which phone each device is by its speed, by its link, and by its rounds."""
    found = []
    for _, own in activities.groupby("device"):
        compute, upload = (own[own["activity"] == name].iloc[0] for name in ("compute", "upload"))
        speed = (compute["t_end_s"] - compute["t_start_s"]) / 20
        starts = {float(100 * (number - 1)) for number in own["round"]}
        (there,) = [
            key
            for key, spans in ONLINE_S.items()
            if starts == {t for t in np.arange(36) * 100.0 if any(a <= t < b for a, b in spans)}
        ]
        found.append((round(100 * speed), round(1 / (upload["t_end_s"] - upload["t_start_s"])), there))
    return found


def test_a_phone_has_its_own_speed_and_link_where_keys_have_gaps(files, tmp_path):
    assert phones(run(tmp_path / "rates", files)) == [(2, 2, 2), (5, 5, 5), (9, 9, 9)]
    links = {"file": files["uplinks"], "after_end": "wrap"}
    assert phones(run(tmp_path / "links", files, links=links)) == [(2, 2, 2), (5, 5, 5), (9, 9, 9)]


def test_numbering_by_time_online_takes_speed_and_link_along(files, tmp_path):
    links = {"file": files["uplinks"], "after_end": "wrap"}
    # Phone 5 is there for 2600 s, phones 2 and 9 for 3000 s.
    assert phones(run(tmp_path / "up", files, "rising", links=links)) == [(5, 5, 5), (2, 2, 2), (9, 9, 9)]
    assert phones(run(tmp_path / "down", files, "falling", links=links)) == [(2, 2, 2), (9, 9, 9), (5, 5, 5)]


def test_by_position_and_in_files_without_keys_row_k_is_device_k(files, tmp_path):
    links = {"file": files["uplinks"], "after_end": "wrap"}
    by_place = run(tmp_path / "place", files, "rising", links=links, match="position")
    assert phones(by_place) == [(1, 1, 5), (2, 10, 2), (3, 2, 9)]
    pd.read_parquet(files["capacity"]).drop(columns="key").to_csv(tmp_path / "speed.csv", index=False)
    without = files | {"capacity": str(tmp_path / "speed.csv")}
    assert phones(run(tmp_path / "without", without, "rising")) == [(1, 1, 5), (2, 2, 2), (3, 3, 9)]


def test_a_phone_that_another_file_lacks_is_one_line_with_both_files_and_the_key(files, tmp_path):
    for name, devices in (("capacity", {}), ("uplinks", {"links": {"file": files["uplinks"], "after_end": "wrap"}})):
        frame = pd.read_parquet(files[name])
        kept = frame[frame["key"] != "5"].reset_index(drop=True)
        kept["device"] = kept["key"].astype(object).factorize()[0]
        kept.to_parquet(tmp_path / "less.parquet")
        less = (files | {"capacity": str(tmp_path / "less.parquet")}) if name == "capacity" else files
        if name == "uplinks":
            devices["links"]["file"] = str(tmp_path / "less.parquet")
        said = f"{tmp_path / 'less.parquet'}: has no device '5' (device 1 of the run, from {files['behaviour']}); "
        with in_one_line(re.escape(said) + r'.*devices\.match = "position"'):
            run(tmp_path / "run", less, **devices)
        assert not (tmp_path / "run").exists()


@given(st.lists(st.integers(0, 30), unique=True, min_size=1), st.lists(st.integers(0, 30), unique=True, min_size=1))
def test_rows_by_key_are_those_of_a_dictionary(here, there):
    wanted, other = DeviceKeys(texts(map(str, here)), "here"), DeviceKeys(texts(map(str, there)), "there")
    row_of = {key: row for row, key in enumerate(there)}
    lacking = [key for key in here if key not in row_of]
    if lacking:
        place = here.index(lacking[0])
        said = rf"^there: has no device '{lacking[0]}' \(device {place} of the run, from here\)"
        with pytest.raises(EdgesimError, match=said):
            wanted.rows_in(other)
    else:
        assert wanted.rows_in(other).tolist() == [row_of[key] for key in here]
