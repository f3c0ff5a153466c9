"""On/off lists, mahimahi, AI-Benchmark, how a file's format is told, and options that do not apply to it."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_rows import rows
from refusals import in_one_line

from edgesim.base.device_keys import texts
from edgesim.devices.profile import Profile
from edgesim.radio.environment import RecordedEnvironment, load_environment
from edgesim.traces.convert import convert
from edgesim.traces.readers import Capacity, detect, read_recording
from edgesim.traces.readers.ai_benchmark import read_ai_benchmark
from edgesim.traces.readers.mahimahi import read_mahimahi
from edgesim.traces.readers.on_off import read_on_off


def text(folder: Path, body: str, name: str = "list.csv") -> Path:
    path = folder / name
    path.write_text(body, errors="surrogateescape")
    return path


LIST = "device,state,t1,t2,t3\n0,on,10,20\n2,off,5\n\n1, off, 1, 2, 30.5\n"


def test_an_on_off_list_gives_the_state_at_0_and_its_changes(tmp_path):
    path = text(tmp_path, LIST)
    assert rows(read_on_off(path)) == [(0, 0, 10), (0, 20, 30.5), (1, 1, 2), (2, 5, 30.5)]
    longer = read_on_off(path, 100.0)
    assert rows(longer) == [(0, 0, 10), (0, 20, 100), (1, 1, 2), (1, 30.5, 100), (2, 5, 100)]
    assert longer.available.length_s.tolist() == [100.0] * 3
    headless = text(tmp_path, LIST.split("\n", 1)[1], "bare.csv")
    assert rows(read_recording(headless)) == rows(read_on_off(path))


opportunities = st.lists(st.integers(0, 60), min_size=1, max_size=40).map(sorted).filter(lambda at: at[-1] > 0)


def uplink(folder: Path, at_ms: list[int]) -> RecordedEnvironment:
    source = text(folder, "".join(f"{t}\n" for t in at_ms), "up.mahimahi")
    written = convert(source, folder / "up.parquet")
    assert isinstance(written, Capacity)
    keys = f'[capacity]\nfile = "up.parquet"\nend_s = {written.ends_s["up"]}\nafter_end = "wrap"\n'
    found = load_environment(str(text(folder, f'name = "up"\nsource = "made up"\n{keys}', "up.toml")))
    assert isinstance(found, RecordedEnvironment)
    return found


@settings(max_examples=40)
@given(opportunities, st.integers(1, 80), st.integers(0, 150))
def test_an_upload_ends_with_the_packet_that_completes_it(at_ms, packets, start_ms):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        table = uplink(Path(folder), at_ms).capacity
    # Brute force: count opportunities one by one, lap by lap; one at 0 ms falls into the first millisecond.
    lap_ms, left, lap = at_ms[-1], packets, 0
    end_ms = None
    while end_ms is None:
        for t in at_ms:
            if lap * lap_ms + max(t, 1) > start_ms and left > 0:
                left -= 1
                if left == 0:
                    end_ms = lap * lap_ms + max(t, 1)
        lap += 1
    found_ms = 1e3 * float(table.end_s(0, 12_000.0 * packets, start_ms / 1e3))
    # The last packet's millisecond may hold further packets: the upload ends within it.
    assert end_ms - 1 < found_ms <= end_ms + 1e-6


def test_the_file_of_the_format_page_carries_four_packets_a_lap(tmp_path):
    found = read_mahimahi(text(tmp_path, "7\n7\n9\n31\n", "up"))
    assert found.ends_s == {"up": 0.031}
    ((t_s, bps),) = found.tables.values()
    assert t_s.tolist() == [0.0, 0.006, 0.007, 0.008, 0.009, 0.030]
    assert bps.tolist() == [0.0, 24e6, 0.0, 12e6, 0.0, 12e6]


BINS = "trace,direction,bin,packets,mbps\na,up,0,3,0.36\na,down,0,0,0\na,up,1,0,0\na,down,1,7,0.84\na,up,2,1,0.12\n"


def test_counted_packets_become_a_table_for_each_trace_and_direction_with_an_end_of_its_own(tmp_path):
    found = read_recording(text(tmp_path, BINS))
    assert isinstance(found, Capacity)
    assert found.ends_s == {"a-up": 0.3, "a-down": 0.2}
    (up_s, up_bps), (down_s, down_bps) = found.tables["a-up"], found.tables["a-down"]
    assert (up_s.tolist(), up_bps.tolist()) == ([0.0, 0.1, 0.2], [360_000.0, 0.0, 120_000.0])
    assert (down_s.tolist(), down_bps.tolist()) == ([0.0, 0.1], [0.0, 840_000.0])


def test_scores_become_times_with_the_stated_median_and_the_relative_speeds_kept(tmp_path):
    path = text(tmp_path, 'model,ai_score\n"A, 5G",1000\nB,4000\nC,2000\n', "ai.csv")
    found = read_ai_benchmark(path)
    assert found.s_per_sample == pytest.approx([0.1, 0.025, 0.05])
    assert found.models.tolist() == ["A, 5G", "B", "C"]
    assert read_ai_benchmark(path, 0.2).s_per_sample == pytest.approx([0.4, 0.1, 0.2])
    with in_one_line(r"median_s: expected finite seconds per sample above 0"):
        read_ai_benchmark(path, 0.0)


MAP = "android_model,benchmark_model\n"


def phones(*models: str) -> Profile:
    keys = texts(f"p{k}" for k in range(len(models)))
    return Profile(np.ones(len(models)), None, keys=keys, models=texts(models))


def test_recorded_phones_get_the_scores_of_their_models_and_the_median_where_there_is_none(tmp_path):
    # B is listed with two chips: its last score counts. The list's median is 1000.
    scores = text(tmp_path, "model,ai_score\nA,4000\nB,3000\nC,1000\nB,500\nD,100\n", "ai.csv")
    names = text(tmp_path, MAP + "SM-A,A\nSM-B,B\nSM-U,\nSM-Z,Z\n", "map.csv")
    found = read_ai_benchmark(scores, 0.06, phones("SM-B", "SM-A", "SM-U", "", "SM-Z", "A"), names)
    # 0.06 s x 1000 / score; the last four, not in the map or not in the list, get (500 + 4000) / 2.
    assert found.s_per_sample == pytest.approx([0.12, 0.015] + 4 * [60 / 2250])
    assert found.guessed == 4
    assert found.keys.tolist() == [f"p{k}" for k in range(6)]
    assert found.models.tolist() == ["SM-B", "SM-A", "SM-U", "", "SM-Z", "A"]


@pytest.mark.parametrize(
    ("name", "body", "format"),
    [
        ("a.csv", "device,start_s,end_s\n0,1,2\n", "intervals"),
        ("a.csv", "device_id,start_s,end_s\n0,1,2\n", "intervals"),
        ("a.csv", "trace,direction,bin,packets\nx,up,0,3\n", "mahimahi-bins"),
        ("a.csv", "0,on,3\n", "on-off"),
        ("a.csv", "t_s,bps\n0,3\n", "capacity"),
        ("a.csv", "trace,t_s,bps\nx,0,3\n", "capacity"),
        ("a.csv", "device,s_per_sample\n0,0.1\n", "profile"),
        ("a.csv", "model,ai_score\nX,3\n", "ai-benchmark"),
        ("a.json", ' {"0": {}}', "flash"),
        ("up", "3\n4\n", "mahimahi"),
        ("pickled", "\x80", None),
    ],
)
def test_a_format_is_told_by_columns_or_first_bytes(name, body, format, tmp_path):
    path = tmp_path / name
    path.write_bytes(body.encode("latin-1"))
    assert detect(path) == (format or "fedscale")


PHONES, SPEED = phones("SM-B"), "device,s_per_sample\n0,1\n"
SCORES = "model,ai_score\nA,4000\n"
REFUSED = [
    ("hello\n", {}, "the format cannot be detected; give it with format: intervals, on-off, flash"),
    ("device_id,start_s\n0,1\n", {}, "be detected: for 'intervals' it lacks the column end_s; give it with"),
    ("colour,height\nred,1\n", {}, "be detected; give it with"),
    ("hello\n", {"format": "flush"}, "format: unknown format 'flush', did you mean 'flash'? known: "),
    (LIST, {"median_s": 0.1}, "median_s: is for the formats ai-benchmark, but "),
    (SPEED, {"phones": PHONES}, "phones: is for the formats ai-benchmark, but"),
    (SCORES, {"phones": PHONES}, "phones, model_map: expected both or neither"),
    (SCORES, {"phones": PHONES, "model_map": MAP + "SM-A,A\n"}, "at least one of the phones' models with a score in"),
    (SCORES, {"phones": PHONES, "model_map": MAP + "S,A\nS,B\n"}, "line 3: android_model: expected each model once"),
    (SCORES, {"phones": PHONES, "model_map": "android_model\nS\n"}, "column 'benchmark_model' is missing"),
]


@pytest.mark.whole_family
@pytest.mark.parametrize(("body", "options", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_a_file_of_no_known_kind_and_options_that_do_not_apply_are_refused(body, options, said, tmp_path):
    if "model_map" in options:
        options = options | {"model_map": text(tmp_path, options["model_map"], "map.csv")}
    with in_one_line(re.escape(said)):
        read_recording(text(tmp_path, body), **options)


def test_several_capacity_traces_in_one_file_keep_their_names_and_are_chosen_by_name(tmp_path):
    source = text(tmp_path, "trace,t_s,bps\nb,0,5\nb,2,7\na,0,9\n", "links.csv")
    written = convert(source, tmp_path / "links.parquet")
    assert isinstance(written, Capacity)
    assert list(written.tables) == ["b", "a"]
    toml = 'name = "x"\nsource = "y"\n[capacity]\nfile = "links.parquet"\nafter_end = "hold"\n'
    chosen = load_environment(str(text(tmp_path, toml + 'trace = "b"\n', "b.toml")))
    assert isinstance(chosen, RecordedEnvironment)
    assert chosen.capacity.bits_between(0, 0.0, 4.0) == pytest.approx(2 * 5 + 2 * 7)
    for wrong in ("", 'trace = "c"\n'):
        with in_one_line(r"capacity: trace: expected one of the traces of links\.parquet: b, a"):
            load_environment(str(text(tmp_path, toml + wrong, "c.toml")))


def test_lines_blank_throughout_are_left_out(tmp_path):
    found = read_ai_benchmark(text(tmp_path, "phone,ai_score\nA,100\n\n , \n,\nC,300\n", "phones.csv"))
    assert found.s_per_sample == pytest.approx([0.1, 0.1 / 3])
