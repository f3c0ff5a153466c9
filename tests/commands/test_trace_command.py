"""`edgesim trace` as typed, and runs on what it writes."""

import json
import pickle
import re
import shlex
from pathlib import Path

import pytest
from typed_commands import edgesim_lines, refused

from edgesim.devices.profile import read_profile
from edgesim.folder.records import read_config, read_run
from edgesim.radio.environment import load_environment

ROOT = Path(__file__).parents[2]
LOG = """2020-01-29 00:00:00\tscreen_off
2020-01-29 00:00:00\tbattery_charged_on
2020-01-29 00:01:00\twifi
2020-01-29 18:00:00\tbattery_charged_off"""

RUN = """
rounds = 3
devices.count = 3
data = { dataset = 'none', partition = 'fedteddi' }
learning = { training = 'none', pretrain = true }
round = { tmax_s = 9.0, payload_bits = 1e5 }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, figures_as_text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.json").write_text(json.dumps({str(k): {"messages": LOG} for k in range(3)}))
    capacity = {k: {"computation": 10.0 + k, "communication": 1000.0} for k in range(1, 4)}
    (tmp_path / "client_device_capacity").write_bytes(pickle.dumps(capacity))
    (tmp_path / "up").write_text("7\n7\n9\n31\n")
    return tmp_path


def trace(words: str) -> str:
    """What ``edgesim trace`` and these words print."""
    status, output = edgesim_lines("trace", *shlex.split(words))
    assert status == 0, output
    return output


def shares(output: str) -> tuple[str, str]:
    """Share of all time, and of the time observed, at which devices are online."""
    of_all, of_observed = (
        re.search(rf"online, of {time}\W+([\d.]+)%", output) for time in ("all time", "observed time")
    )
    return of_all[1], of_observed[1]


def run_with(text: str) -> str:
    """Run a small config with these further lines; a fourth device is one too many for its recording."""
    Path("run.toml").write_text(RUN + text)
    status, output = edgesim_lines("run", "run.toml")
    assert status == 0, output
    return output


def test_counts_online_are_of_the_devices_still_recorded(folder):
    """Recordings of 10, 20 and 40 s: two of three there at first, none of two from 10 s on, one of one at the end."""
    (folder / "apart.csv").write_text("device,start_s,end_s,length_s\n0,0,10,10\n1,0,8,20\n2,30,40,40\n")
    output = trace("show apart.csv")
    # 28 s of 70 device-seconds, both over 40 s.
    assert re.search(r"least, mean, most\W+0 of 2, 0\.7 of 1\.8, 2 of 3", output)
    assert shares(output)[0] == "40.00"


def test_availability_is_converted_shown_and_run(folder):
    output = trace("convert log.json phones.parquet")
    assert "3 devices, 3 periods, 1.00 days; online 74.93% of the time, not observed 25.1%" in output
    assert '[availability]\nmodel = "table"\nfile = "phones.parquet"\nafter_end = "wrap"' in output
    output = trace("show phones.parquet --out figures")
    assert "25.1%" in output
    assert re.search(r"online of those recorded: least, mean, most\W+0 of 3, 2\.2 of 3\.0, 3 of 3", output)
    assert (folder / "figures/anatomy.png").exists()
    output = run_with("availability = { model = 'table', file = 'phones.parquet' }")
    assert "not observed 25.1% of the time (counted as absent)" in output
    assert read_run(folder / "runs/run")["unobserved_share"] == pytest.approx(1 - 64_740 / 86_400)
    kept = read_config(folder / "runs/run")["availability"]
    expected = {"model": "table", "file": "phones.parquet", "after_end": "raise"}
    assert kept == expected | {"interruption": "abort", "order": "given"}
    # The config that a run keeps reproduces it.
    assert "reused" in edgesim_lines("run", "runs/run/config.toml", "--out", "runs/run")[1]


def test_parts_of_the_rule_and_unobserved_time_are_chosen_as_typed(folder):
    trace("convert log.json a.parquet --require 'wifi, idle'")
    output = trace("convert log.json b.parquet --unobserved present")
    assert "online 100.00% of the time, not observed 25.1% (counts as present)" in output
    assert shares(trace("show b.parquet")) == ("100.00", "100.00")


def test_lengths_and_what_was_observed_are_given_to_convert_and_to_show(folder):
    (folder / "there.csv").write_text("device,start_s,end_s\n0,0,500\n1,100,300\n")
    (folder / "seen.csv").write_text("device,start_s,end_s\n0,0,1000\n1,0,1000\n")
    (folder / "lengths.csv").write_text("device,length_s\n0,1000\n1,2000\n")
    options = "--lengths lengths.csv --observed seen.csv"
    # 700 of 3,000 s there; the second 1,000 s of one device nobody saw.
    output = trace(f"convert there.csv out.parquet {options}")
    assert "online 23.33% of the time, not observed 33.3% (counts as absent)" in output
    for shown in ("out.parquet", f"there.csv {options}"):
        assert shares(trace(f"show {shown}")) == ("23.33", "35.00")
    assert shares(trace(f"show there.csv {options} --unobserved present"))[0] == "56.67"


def test_speeds_are_converted_shown_and_run(folder):
    assert "3 devices, median 36 ms a sample" in trace("convert client_device_capacity speed.parquet")
    trace("show speed.parquet")
    assert (folder / "runs/trace-speed/profile.svg").exists()
    run_with("devices.profile = 'speed.parquet'")
    line = refused("run", "run.toml", "--set", "devices.count=4", "--out", "other")
    assert "speed.parquet: is a profile of 3 devices, but devices.count is 4" in line
    assert not (folder / "other").exists()


def test_links_are_converted_with_the_keys_of_their_environment(folder):
    output = trace("convert up up.parquet")
    # The keys hold wherever the environment file lies.
    (folder / "elsewhere").mkdir()
    keys = output[output.index("[capacity]") :]
    (folder / "elsewhere/up.toml").write_text(f'name = "up"\nsource = "made up"\n{keys}')
    assert load_environment("elsewhere/up.toml").capacity.bits_between(0, 0.0, 0.031) == pytest.approx(48_000.0)
    trace("show up.parquet")
    assert (folder / "runs/trace-up/capacity.png").exists()


def test_several_recordings_become_links_that_a_run_sends_over(folder):
    (folder / "down").write_text("1\n2\n")
    output = trace("convert up down up links.parquet")
    assert "links of 3 devices, 14 rows" in output
    assert "links of 3 devices" in trace("show links.parquet")
    assert (folder / "runs/trace-links/links.png").exists()
    run_with(f"\nradio.sharing = 'own'\n{output[output.index('[devices.links]') :]}")
    line = refused("run", "run.toml", "--set", "devices.count=4", "--out", "other")
    assert "links.parquet: is a recording of 3 links, but devices.count is 4" in line


def test_the_converter_says_how_many_periods_reach_beyond_finish_time(folder):
    phones = {
        1: {"active": [0, 50, 120], "inactive": [10, 110, 130], "finish_time": 100},
        2: {"active": [0], "inactive": [100], "finish_time": 100},
    }
    (folder / "behaviour").write_bytes(pickle.dumps(phones))
    assert "2 periods cut at finish_time" in trace("convert behaviour phones.parquet")


def test_models_are_counted_and_give_recorded_phones_their_speeds(folder):
    models = ["P20", "P20", "SM-A", None, "SM-B"]
    log = {str(2 * k): {"model": model, "messages": LOG} for k, model in enumerate(models)}
    (folder / "log.json").write_text(json.dumps(log))
    (folder / "scores.csv").write_text("model,ai_score\nHuawei P20,2000\nGalaxy A,1000\n")
    (folder / "map.csv").write_text("android_model,benchmark_model\nP20,Huawei P20\nSM-A,Galaxy A\nSM-B,\n")
    told = "3 models, most often P20 (2), SM-A (1), SM-B (1); unknown for 1"
    guessed = "2 have models without a score and get the median score of the others"
    by_model = "convert scores.csv speed.parquet --phones phones.parquet --model-map map.csv"
    for words in ("convert log.json phones.parquet", "show phones.parquet", "show log.json", by_model):
        output = trace(words)
        assert told in output
    assert guessed in output
    assert guessed in trace("show speed.parquet")
    # The list's median is 1500 and takes 50 ms; the median of the phones' own three scores is 2000.
    found = read_profile(folder / "speed.parquet")
    assert found.s_per_sample == pytest.approx([0.0375, 0.0375, 0.075, 0.0375, 0.0375])
    assert found.keys.tolist() == ["0", "2", "4", "6", "8"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("show nowhere", "traces: no file 'nowhere' ... sample-week"),
        ("show notes.txt", "notes.txt: the format cannot be detected"),
        ("show cut.parquet", "cut.parquet: not a readable parquet file"),
        ("convert log.json on.csv x.parquet", "log.json: expected a recording of capacity"),
        ("convert up x.parquet --links '*-up'", "links *-up: no trace of up has such a name"),
        ("convert log.json x.csv", "x.csv: expected a name that ends in .parquet"),
        ("convert log.json x.parquet --format flush", "unknown format 'flush'"),
        ("convert on.csv x.parquet --length-s inf", "--length-s: expected seconds ... (got inf)"),
        ("show on.csv --median-s nan", "--median-s: is for the formats ai-benchmark"),
        ("convert log.json x.parquet --lengths up", "lengths: is for the formats intervals, on-off, but log.json"),
        ("show up --observed on.csv", "observed: is for recordings of availability, which up is not"),
        ("convert log.json x.parquet --require asleep", "expected some of idle, charging, wifi (got asleep)"),
        ("convert log.json x.parquet --unobserved maybe", "'--unobserved': 'maybe' is not one of 'absent'"),
        ("convert log.json x.parquet --length-s 5", "--length-s: is for the formats intervals, on-off"),
        ("convert up up x.parquet --require wifi", "--gap-s, --phones and --model-map"),
        (
            "convert scores.csv x.parquet --phones up --model-map map.csv",
            "--phones: expected a recording with the models of its phones (got up)",
        ),
        ("fetch flash", "unknown recording 'flash'; known: fedscale-behaviour"),
    ],
)
def test_bad_input_is_one_line_without_a_traceback(folder, words, said):
    (folder / "notes.txt").write_text("hello\n")
    (folder / "scores.csv").write_text("model,ai_score\nHuawei P20,2000\n")
    (folder / "map.csv").write_text("android_model,benchmark_model\nP20,Huawei P20\n")
    (folder / "on.csv").write_text("0,on,3\n")
    whole = (ROOT / "traces/sample-week.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:5000])
    line = refused("trace", *shlex.split(words))
    assert [word for word in said.split(" ... ") if word not in line] == []
    assert not (folder / "x.parquet").exists()


def test_positions_are_converted_with_their_stays_shown_and_run(folder):
    text = "".join(f"{' '.join(f'{t_s} {10 * k + t_s} {5 * k}' for t_s in range(0, 200, 20 + k))}\n" for k in range(3))
    (folder / "nodes.movements").write_text(text)
    output = trace("convert nodes.movements drive.parquet --stays stays.parquet --gap-s 30")
    assert "drive.parquet: positions of 3 devices, 30 rows, 198 s; 218 x 10 m around (109, 5)" in output
    run_with("\n" + output[output.index("[mobility]") :].replace("\n[availability]", "\n\n[availability]"))
    assert "drive: positions of 3 devices" in trace("show drive.parquet --out figures")
    assert (folder / "figures" / "positions.png").exists()
    line = refused("trace", "convert", "log.json", "phones.parquet", "--stays", "stays.parquet")
    assert line.endswith("stays, gap_s: are for recorded positions, which log.json are not")
