import re
from pathlib import Path

import pytest

from edgesim.errors import EdgesimError
from edgesim.traces import read_intervals
from edgesim.traces.convert import convert
from edgesim.traces.readers import Presence
from edgesim.traces.sample_week import sample_week

HEAD = "device,start_s,end_s,length_s\n"


def csv(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(HEAD + body)
    return path


def rows(path: Path) -> list[tuple[int, float, float]]:
    found = read_intervals(path)
    return list(zip(found.device.tolist(), found.start_s.tolist(), found.end_s.tolist(), strict=True))


def test_unobserved_time_counts_as_absent_unless_told_and_its_share_is_kept(tmp_path: Path) -> None:
    available = csv(tmp_path, "available.csv", "0,10,20,100\n1,0,5,100\n")
    seen = csv(tmp_path, "seen.csv", "0,0,50,100\n1,0,100,100\n2,60,70,100\n")
    out = tmp_path / "out.parquet"
    convert(available, out, observed=seen)
    assert rows(out) == [(0, 10, 20), (1, 0, 5)]
    # Nobody looked in 50 + 0 + 90 of 300 device-seconds.
    assert read_intervals(out).unobserved_share == pytest.approx(140 / 300)
    assert read_intervals(out).device_count == 3
    convert(available, out, observed=seen, unobserved="present")
    assert rows(out) == [(0, 10, 20), (0, 50, 100), (1, 0, 5), (2, 0, 60), (2, 70, 100)]


def test_a_recording_that_is_all_observed_has_no_unobserved_share(tmp_path: Path) -> None:
    written = convert(csv(tmp_path, "a.csv", "0,10,20,100\n"), tmp_path / "out.parquet")
    assert isinstance(written, Presence)
    assert written.available.unobserved_share == 0.0


def test_bad_input_writes_nothing(tmp_path: Path) -> None:
    for body, said in (("0,10,5,100\n", "end_s: expected"), ("", "holds no rows")):
        with pytest.raises(EdgesimError, match=said):
            convert(csv(tmp_path, "a.csv", body), tmp_path / "out.parquet")
    (tmp_path / "links.csv").write_text("t_s,bps\n0,5\n")
    with pytest.raises(EdgesimError, match=re.escape("--observed: is for recordings of presence")):
        convert(tmp_path / "links.csv", tmp_path / "out.parquet", observed=tmp_path / "a.csv")
    assert not (tmp_path / "out.parquet").exists()


def test_the_shipped_week_is_what_its_generator_writes() -> None:
    path = Path(__file__).parents[2] / "traces" / "sample-week.parquet"
    shipped, made = read_intervals(path), sample_week()
    for name in ("device", "start_s", "end_s", "length_s"):
        assert getattr(shipped, name).tolist() == getattr(made, name).tolist(), name
    assert path.stat().st_size < 200_000
