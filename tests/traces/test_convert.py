import re
from pathlib import Path

import pytest
from interval_rows import rows
from refusals import in_one_line

from edgesim.config import AvailabilityConfig
from edgesim.radio.link_file import read_links
from edgesim.streams import Streams
from edgesim.traces.convert import convert
from edgesim.traces.convert_links import convert_links
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.models import make_availability
from edgesim.traces.sample_week import sample_week

HEAD = "device,start_s,end_s,length_s\n"


def csv(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(HEAD + body)
    return path


def test_unobserved_time_counts_as_absent_unless_told_and_its_share_is_kept(tmp_path):
    available = csv(tmp_path, "available.csv", "0,10,20,100\n1,0,5,100\n")
    seen = csv(tmp_path, "seen.csv", "0,0,50,100\n1,0,100,100\n2,60,70,100\n")
    out = tmp_path / "out.parquet"
    convert(available, out, observed=seen)
    assert rows(read_intervals(out)) == [(0, 10, 20), (1, 0, 5)]
    # Nobody looked in 50 + 0 + 90 of 300 device-seconds.
    assert read_intervals(out).unobserved_share == pytest.approx(140 / 300)
    assert read_intervals(out).device_count == 3
    asked = make_availability(AvailabilityConfig(model="table", file=str(out)), 2, Streams(0))
    # Of the two devices that a run replays, nobody looked at one for half its time.
    assert asked.facts()["unobserved_share"] == 0.25
    convert(available, out, observed=seen, unobserved="present")
    assert rows(read_intervals(out)) == [(0, 10, 20), (0, 50, 100), (1, 0, 5), (2, 0, 60), (2, 70, 100)]


@pytest.mark.parametrize("head", [HEAD, "device,start_s,end_s\n"])
def test_recordings_of_different_length_that_are_all_observed_have_no_unobserved_share(tmp_path, head):
    available = csv(tmp_path, "available.csv", "0,10,20,100\n1,0,5,1000\n")
    seen, out = tmp_path / "seen.csv", tmp_path / "out.parquet"
    seen.write_text(head + ("0,0,100,100\n1,0,1000,1000\n" if head == HEAD else "0,0,100\n1,0,1000\n"))
    for unobserved in ("absent", "present"):
        convert(available, out, observed=seen, unobserved=unobserved)
        assert read_intervals(out).unobserved_share == 0.0
        assert read_intervals(out).length_s.tolist() == [100, 1000]
        assert rows(read_intervals(out)) == [(0, 10, 20), (1, 0, 5)]
    # A device seen for 40 s beyond its recording, one of which there is nothing else, and a gap of 50 s.
    seen.write_text(HEAD + "0,0,140,1000\n1,50,1000,1000\n2,0,300,300\n")
    convert(available, out, observed=seen)
    assert read_intervals(out).length_s.tolist() == [140, 1000, 300]
    assert read_intervals(out).unobserved_share == pytest.approx(50 / 1440)


def test_observed_time_is_that_of_the_device_of_the_same_id_whatever_the_least_id_is(tmp_path):
    head = "device_id,start_s,end_s,length_s\n"
    available, seen, out = tmp_path / "available.csv", tmp_path / "seen.csv", tmp_path / "out.parquet"
    available.write_text(head + "1,10,20,100\n2,0,5,100\n")
    seen.write_text(head + "0,0,30,100\n1,0,50,100\n2,0,100,100\n")
    convert(available, out, observed=seen)
    found = read_intervals(out)
    assert found.keys.tolist() == ["1", "2", "0"]
    assert found.unobserved_s.tolist() == [50, 0, 70]
    # Without names on one side, devices go by their numbers.
    seen.write_text(HEAD + "0,0,50,100\n1,0,100,100\n")
    convert(available, out, observed=seen)
    assert read_intervals(out).keys.tolist() == ["1", "2"]
    assert read_intervals(out).unobserved_s.tolist() == [50, 0]
    # More devices than have names: nobody is known by name.
    seen.write_text(HEAD + "2,0,100,100\n")
    convert(available, out, observed=seen)
    assert (read_intervals(out).device_count, read_intervals(out).keys) == (3, None)


def test_the_shipped_week_is_what_its_generator_writes():
    path = Path(__file__).parents[2] / "traces" / "sample-week.parquet"
    shipped, made = read_intervals(path), sample_week()
    for name in ("device", "start_s", "end_s", "length_s"):
        assert getattr(shipped, name).tolist() == getattr(made, name).tolist(), name
    assert path.stat().st_size < 250_000


@pytest.fixture
def uplinks(tmp_path: Path) -> Path:
    """Two mahimahi files and a capacity table of two traces."""
    folder = tmp_path / "uplinks"
    folder.mkdir()
    (folder / "b").write_text("1\n2\n")
    (folder / "a").write_text("2\n4\n")
    (folder / "c.csv").write_text("trace,t_s,bps\nhome-up,0,7\nhome-down,0,9\n")
    (folder / ".hidden").write_text("not a recording")
    return folder


def test_recordings_become_the_links_of_devices_in_the_order_given(uplinks, tmp_path):
    out = tmp_path / "links.parquet"
    convert_links([uplinks / "b", uplinks / "a"], out)
    found = read_links(out)
    assert found.end_s is not None
    assert found.end_s.tolist() == [0.002, 0.004]
    # An opportunity of 12,000 bits in each millisecond, and in every other one.
    assert [column.tolist() for column in found.of(0)] == [[0, 0.001], [12e6, 12e6]]
    assert [column.tolist() for column in found.of(1)] == [[0, 0.001, 0.002, 0.003], [0, 12e6, 0, 12e6]]
    assert found.keys.tolist() == ["b", "a"]
    convert(out, tmp_path / "again.parquet")
    assert read_links(tmp_path / "again.parquet").t_s.tolist() == found.t_s.tolist()
    assert read_links(tmp_path / "again.parquet").keys.tolist() == ["b", "a"]
    # The same recording for two devices is a name for neither.
    assert convert_links([uplinks / "b", uplinks / "b"], out).keys is None


def test_a_folder_comes_by_name_and_its_traces_are_chosen_by_pattern(uplinks, tmp_path):
    found = convert_links([uplinks], tmp_path / "links.parquet", length_s=3.0)
    assert found.device_count == 4
    assert found.end_s is not None
    assert found.end_s.tolist() == [0.004, 0.002, 3.0, 3.0]
    chosen = convert_links([uplinks / "c.csv"], tmp_path / "links.parquet", names="*-up")
    assert (chosen.bps.tolist(), chosen.end_s) == ([7.0], None)


def test_what_makes_no_links_is_refused_in_one_line_and_writes_nothing(uplinks, tmp_path):
    availability, out = csv(tmp_path, "availability.csv", "0,1,2,3\n"), tmp_path / "links.parquet"
    (tmp_path / "empty").mkdir()
    for sources, options, said in (
        ([uplinks], {}, "home-up: does not say where it ends, while other recordings do; give a length_s"),
        ([uplinks / "c.csv"], {"names": "*-left"}, "links *-left: no trace of"),
        (
            [uplinks / "a", availability],
            {},
            "availability.csv: expected a recording of capacity, to make links of (read as intervals)",
        ),
        ([tmp_path / "empty"], {}, "empty: holds no files"),
        ([uplinks / "c.csv"], {"length_s": -1.0}, "length_s: expected seconds above 0"),
    ):
        with in_one_line(re.escape(said)):
            convert_links(sources, out, **options)
    assert not out.exists()
