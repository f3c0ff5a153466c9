"""Lengths of recordings from a file beside them, and FedScale's phones as a table."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_rows import rows

from edgesim.base.errors import EdgesimError
from edgesim.config import AvailabilityConfig
from edgesim.devices.profile import read_profile
from edgesim.streams import Streams
from edgesim.traces.convert import convert
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.models import make_availability
from edgesim.traces.readers import detect, read_recording

HEAD = "device_id,model,period_s,available_s,compute_ms_per_sample,bandwidth_kbps\n"


def converted(folder: Path, periods: str, lengths: str):
    (folder / "periods.csv").write_text(periods)
    (folder / "lengths.csv").write_text(lengths)
    convert(folder / "periods.csv", folder / "out.parquet", lengths=folder / "lengths.csv")
    return read_intervals(folder / "out.parquet")


def test_each_recording_is_as_long_as_the_file_says_and_repeats_there(tmp_path):
    found = converted(tmp_path, "device,start_s,end_s\n0,0,5\n1,2,8\n", "device,length_s\n1,20\n0,10\n2,30\n")
    assert found.length_s.tolist() == [10, 20, 30]
    assert found.keys is None
    model = AvailabilityConfig(model="table", file=str(tmp_path / "out.parquet"), after_end="wrap")
    asked = make_availability(model, 3, Streams(0))
    ids = np.arange(3)
    assert asked.available(ids, 11.0).tolist() == [True, False, False]
    assert asked.available(ids, 23.0).tolist() == [True, True, False]


@settings(max_examples=10)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=12), st.integers(0, 1), st.randoms())
def test_lengths_find_their_devices_by_id_wherever_they_stand(tmp_path_factory, lengths_s, first, random):
    """Every other phone is there for its first second; all phones have ids from 0 or from 1."""
    ids = list(range(first, first + len(lengths_s)))
    length_of = dict(zip(ids, lengths_s, strict=True))
    periods = "".join(f"{device},0,1\n" for device in ids[::2])
    order = random.sample(ids, len(ids))
    found = converted(
        tmp_path_factory.mktemp("run"),
        "device_id,start_s,end_s\n" + periods,
        "device_id,period_s\n" + "".join(f"{device},{length_of[device]}\n" for device in order),
    )
    assert dict(zip(found.keys, found.length_s, strict=True)) == {
        str(device): length for device, length in length_of.items()
    }
    assert [found.keys[device] for device in found.device] == [str(device) for device in ids[::2]]


def test_ids_of_a_file_of_lengths_count_from_0_or_1_where_the_recording_has_none(tmp_path):
    found = converted(tmp_path, "device,start_s,end_s\n0,0,5\n1,2,8\n", "device_id,length_s\n1,20\n2,10\n")
    assert found.length_s.tolist() == [20, 10]


def test_lengths_come_before_what_was_observed_not_after(tmp_path):
    (tmp_path / "periods.csv").write_text("device,start_s,end_s\n0,0,5\n")
    (tmp_path / "seen.csv").write_text("device,start_s,end_s\n0,0,8\n")
    (tmp_path / "lengths.csv").write_text("device,length_s\n0,10\n")
    lengths = tmp_path / "lengths.csv"
    convert(tmp_path / "periods.csv", tmp_path / "out.parquet", observed=tmp_path / "seen.csv", lengths=lengths)
    assert read_intervals(tmp_path / "out.parquet").unobserved_share == pytest.approx(0.2)
    with pytest.raises(EdgesimError, match=r"out\.parquet: expected a recording without notes of unobserved"):
        convert(tmp_path / "out.parquet", tmp_path / "again.parquet", lengths=lengths)
    with pytest.raises(EdgesimError, match="length_s, lengths: expected one of them at most"):
        read_recording(tmp_path / "periods.csv", lengths=lengths, length_s=9.0)


def test_a_table_of_fedscales_phones_becomes_a_profile_with_keys_and_models(tmp_path):
    (tmp_path / "phones.csv").write_text(HEAD + "7,B,10,9,200,1000\n2,A,20,9,10,2500\n9,,20,9,30,4\n")
    assert detect(tmp_path / "phones.csv") == "fedscale-devices"
    convert(tmp_path / "phones.csv", tmp_path / "out.parquet")
    found = read_profile(tmp_path / "out.parquet")
    assert found.keys.tolist() == ["2", "7", "9"]
    assert found.models.tolist() == ["A", "B", ""]
    # Three times inference; kilobits are 1,000 bits.
    assert found.s_per_sample.tolist() == pytest.approx([0.03, 0.6, 0.09])
    assert found.link_bps.tolist() == [2.5e6, 1e6, 4e3]


def test_the_last_state_of_an_on_off_list_holds_as_long_as_each_devices_own_recording(tmp_path):
    """There from 0 on, for good from 20 on, never, for good from the end of its recording on; and one without a row."""
    lines = "0,on,10\n1,off,5,7,20\n2,off\n3,off,9\n"
    found = converted(tmp_path, lines, "device,length_s\n4,1\n3,9\n1,50\n2,30\n0,12\n")
    assert found.length_s.tolist() == [12, 50, 30, 9, 1]
    assert rows(found) == [(0, 0, 10), (1, 5, 7), (1, 20, 50)]
