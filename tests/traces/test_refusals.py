"""What readers of recordings and models of availability refuse: each in one line that names the place."""

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import in_one_line

from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces.convert import convert
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.models import make_availability
from edgesim.traces.readers import read_recording
from edgesim.traces.readers.ai_benchmark import read_ai_benchmark
from edgesim.traces.readers.fedscale import read_fedscale
from edgesim.traces.readers.flash import read_flash
from edgesim.traces.readers.mahimahi import read_mahimahi
from edgesim.traces.readers.on_off import read_on_off

pytestmark = pytest.mark.whole_family

INTERVALS = [
    ("0,1,2\n1,nan,4\n", "line 3: start_s: expected a finite number (got nan)"),
    ("0,1,2\n1,3,\n", "line 3: end_s: expected a finite number (got nan)"),
    ("0,1,2\n\n1,3\n", "line 4: expected 3 fields (got 2)"),
    ("0,1,2,3\n", "line 2: expected 3 fields (got 4)"),
    ("0,1,2\n\n0,3,4,5,6\n", "line 4: expected 3 fields (got 5)"),
    ('0,"1",2\n0,1,"2\n3,4,5\n', "line 3: expected quotes around whole fields only, and each closed"),
    # Bytes that are no text behind the row that is too long.
    ("0,1,2\n0,3,4,5\n0,\udcff,9\n", "line 3: expected 3 fields (got 4)"),
    ("0,1,inf\n", "line 2: end_s: expected a finite number (got inf)"),
    ("0,1,2\n0,soon,4\n", "line 3: start_s: expected a finite number (got soon)"),
    ("0,-1,2\n", "line 2: start_s: expected seconds since the start of the trace, 0 or more (got -1)"),
    ("0,1,2\n0,4,3\n", "line 3: end_s: expected an instant after the row's own start_s (got 3)"),
    ("0,1,1e18\n", "line 2: end_s: expected at most 3.2e+09 s (got 1e18)"),
    ("0,4,4\n", "line 2: end_s: expected an instant after the row's own start_s (got 4)"),
    ("0,1,3\n1,0,9\n0,2,4\n", "line 4: start_s: expected no overlap with the device's row before (got 2)"),
    ("0,5,6\n1,0,9\n0,1,2\n", "line 4: start_s: expected the rows of a device sorted by time (got 1)"),
    ("0,1,2\n10000000,1,2\n", "line 3: device: expected a whole number from 0 to 9999999 (got 10000000)"),
    ("-1,1,2\n", "line 2: device: expected a whole number from 0 to 9999999 (got -1)"),
    ("0.5,1,2\n", "line 2: device: expected a whole number from 0 to 9999999 (got 0.5)"),
    ("", "holds no rows"),
]
LENGTHS = [
    ("0,1,2,1e18\n", "line 2: length_s: expected at most 3.2e+09 s (got 1e18)"),
    ("0,1,2,10\n0,3,11,10\n", "line 3: end_s: expected an instant within the row's own length_s"),
    ("0,1,2,10\n0,3,4,12\n", "line 3: length_s: expected one length in all rows of a device"),
    ("0,1,2,\n", "line 2: length_s: expected a finite number"),
]
HEADS = [
    ("phone,start_s,end_s\n0,1,2\n", "column 'device' is missing; expected device, start_s, end_s; found phone"),
    ("", "not a readable csv file: No columns to parse"),
    ('device,"start_s,end_s\n0,1,2\n', "line 1: expected quotes around whole fields only, and each closed"),
    ("device_id,start_s,end_s\n0,1,2\nx,1,2\n", "line 3: device_id: expected a finite number (got x)"),
]
ON_OFF = [
    ("0,on,10,9\n", "line 1: t2: expected a later instant than the one before (got 9)"),
    ("0,on,10\n1,on,-4\n", "line 2: t1: expected seconds, 0 to 3.2e+09 (got -4)"),
    ("0,on,nan\n", "line 1: t1: expected seconds, 0 to 3.2e+09 (got nan)"),
    ("0,on,x\n", "line 1: t1: expected seconds, 0 to 3.2e+09 (got x)"),
    ("0,up,3\n", "line 1: state: expected on or off, the state at 0 (got up)"),
    ("0\n", "line 1: state: expected on or off"),
    ("-1,on,3\n", "line 1: device: expected a whole number from 0 to 9999999 (got -1)"),
    ("999999999999,on,3\n", "line 1: device: expected a whole number from 0 to 9999999 (got 999999999999)"),
    ("9" * 5000 + ",on,3\n", "line 1: device: expected a whole number from 0 to 9999999 (got 999"),
    ("0,on,1e18\n", "line 1: t1: expected seconds, 0 to 3.2e+09 (got 1e18)"),
    ("0,on,3\n1,off,2\n0,on,4\n", "line 3: device: expected each device once (got 0, which is in line 1)"),
    ('0,on,3\n1,"off,2\n2,on,4\n', "line 2: expected quotes around whole fields only, and each closed"),
    ("0,on,3\n1,on,\udcff\n", "line 2: t1: expected seconds"),
    ("device,state\n", "holds no rows"),
    ("0,on\n", "the last change is at 0 s; give a length_s"),
]
MAHIMAHI = [
    ("1\n5\n4\n", "line 3: expected a time not before the line above (got 4)"),
    ("1\n-5\n", "line 2: expected whole milliseconds, 0 or more (got -5)"),
    ("1\n2.5\n", "line 2: expected whole milliseconds, 0 or more (got 2.5)"),
    ("1\n31622400001\n", "line 2: expected milliseconds of at most a year (got 31622400001)"),
    ("1\n" + "9" * 5000, "line 2: expected milliseconds of at most a year (got 999"),
    ("\n\n", "holds no opportunity after 0 ms"),
    ("0\n0\n", "holds no opportunity after 0 ms"),
]
BINS = [
    ("a,up,0,1\na,up,2,1\n", "line 3: bin: expected 0, 1, 2, ... in the rows of a trace and direction, none left"),
    ("a,up,0,1\nb,up,1,1\n", "line 3: bin: expected 0, 1, 2"),
    ("a,up,0,1\na,up,1,-1\n", "line 3: packets: expected a whole number from 0 to 1000000 (got -1)"),
    ("a,up,0,1.5\n", "line 2: packets: expected a whole number from 0 to 1000000 (got 1.5)"),
    ("a,up,0,\n", "line 2: packets: expected a whole number"),
    ("a,up,0,1\na,down,0,0\n", "a-down: packets: expected a bin with packets"),
    ("", "holds no rows"),
]
SCORES = [
    (f"A,1000\nB,{score}\n", "line 3: ai_score: expected a finite number above 0 (got")
    for score in ("0", "-3", "", "inf", "fast")
]
PHONES_HEAD = "device_id,model,period_s,available_s,compute_ms_per_sample,bandwidth_kbps"
PHONES = [
    ("7,B,10,9,200,1000\n1,A,20,9,0,2500\n", "line 3: compute_ms_per_sample: expected a finite number above 0 (got 0)"),
    ("7,B,10,9,200,1000\n1,A,20,9,10,fast\n", "line 3: bandwidth_kbps: expected a finite number above 0 (got fast)"),
    ("7,B,10,9,200,1000\n7,A,20,9,10,2500\n", "line 3: device_id: expected each device once (got 7)"),
]
CAPACITY = [("b,0,5\nb,2,7\na,0,-9\n", "line 4: bps: expected bit/s, 0 or more (got -9)")]
GOOD, DAY = "2020-01-29 00:00:05\tscreen_on", "2020-01-29 00:00:0"
FLASH_LOGS = [
    (f"{GOOD}\n{DAY}4\twifi", "device '0': messages, line 2: expected the events in order of time"),
    (f"{GOOD}\n\n2020-01-29 wifi", "line 3: expected YYYY-MM-DD HH:MM:SS, a tab and an event (got '2020-01-29 wifi')"),
    (f"{GOOD}\n2020-02-30 00:00:04\twifi", "line 2: expected a time that exists"),
    (f"{GOOD}\n{DAY}6\tscreen_blue", "line 2: expected one of the events 2G, 3G, 4G"),
    (f"1970-01-01 00:00:00\twifi\n{GOOD}", "expected events within a year of each other (got 1970-01-01"),
    (f"{GOOD}\n{DAY}6\twifi\n{DAY}7\tscreen_off", "a device with an event of each of idle, charging, wifi"),
    (7, "device '0': messages: expected text, one event a line"),
    ("", "holds no events"),
]
FLASH_FILES = [
    ('{"0": {"messages": "', "not a readable JSON file: Unterminated string"),
    ('{"0": {"messages": ""}, "1": {"messages": ""}, "0": {"messages": ""}}', "expected each key once (got '0' twice)"),
    ('{"a": {"messages": ""}}', 'expected an object of devices with the keys "0", "1"'),
    ('{"%s": {"messages": ""}}' % ("1" * 5000), "expected an object of devices"),
    ("[1]", "expected an object of devices"),
    ("", "not a readable JSON file"),
]


def client(active: object, inactive: list, finish_time: object = 1000) -> dict:
    return {"duration": 1, "inactive": inactive, "finish_time": finish_time, "active": active, "model": "X"}


NAN, HUGE = float("nan"), 10**400
ABOVE_0 = "expected a finite number above 0 (got"
FEDSCALE = [
    ({1: client([0, 5], [10, 20])}, "client 1: active[1]: expected an instant not before the end of the previous"),
    ({1: client([0, 9], [3, 8])}, "client 1: inactive[1]: expected an instant not before active at the same place"),
    ({1: client([30, 0], [40, 10])}, "client 1: active[1]: expected an instant not before the end of"),
    ({1: client([0], [4]), 2: client([-3], [4])}, "client 2: active[0]: expected finite seconds, 0 or more (got -3)"),
    ({1: client([NAN], [4])}, "client 1: active[0]: expected finite seconds, 0 or more (got nan)"),
    ({1: client([0], [NAN])}, "client 1: inactive[0]: expected an instant"),
    ({1: client([0, 5], [4])}, "client 1: inactive: expected as many instants as active has, 2"),
    ({1: client([0, "x"], [4, 9])}, "client 1: active: expected seconds (got 'x')"),
    ({1: client("soon", [])}, "client 1: active: expected a list of seconds"),
    ({1: client([0], [4], 0)}, f"client 1: finish_time: {ABOVE_0} 0)"),
    ({1: client([0], [4], None)}, f"client 1: finish_time: {ABOVE_0} None)"),
    ({1: client([0], [4]), 2: 5}, f"client 2: finish_time: {ABOVE_0} None)"),
    ({1: {"computation": 0.0, "communication": 5.0}}, f"client 1: computation: {ABOVE_0} 0.0)"),
    ({1: {"computation": 9.0, "communication": 5.0}, 2: {"computation": 9.0}}, "client 2: communication: expected"),
    ({1: {"speed": 3}}, "client 1: expected a dict with active and inactive, or with computation"),
    ({"a": {}}, "expected a dict of clients with whole numbers of at most 64 bits as keys"),
    ({10**5000: client([0], [4])}, "not a pickle of plain data: asks for a dict with numbers of more than 64 bits as "),
    ({1: client([0], [4], HUGE)}, f"client 1: finish_time: {ABOVE_0} {10**59!s}"),
    ({1: client([0], [4], 1e18)}, "client 1: finish_time: expected at most 3.2e+09 s (got 1e+18)"),
    ({1: client([0, HUGE], [4, 5])}, "client 1: active: expected seconds (got 1000"),
    ({1: client([0], [10**5000])}, "client 1: inactive: expected seconds (got an integer too long to print)"),
    ({1: {"computation": HUGE, "communication": 5.0}}, f"client 1: computation: {ABOVE_0} 1000"),
    ([1, 2], "expected a dict of clients"),
    ({}, "expected a dict of clients"),
]


def logs(messages: object) -> str:
    return json.dumps({"0": {"guid": "g0", "model": "P20", "messages": messages}})


def behind(head: str) -> Callable[[object], str]:
    """Writes rows behind a line of columns."""
    return lambda rows: f"{head}\n{rows}"


Reader = Callable[[Path], object]
DOORS: list[tuple[str, Reader, Callable[[object], object], list]] = [
    ("week.csv", read_intervals, behind("device,start_s,end_s"), INTERVALS),
    ("week.csv", read_intervals, behind("device,start_s,end_s,length_s"), LENGTHS),
    ("week.csv", read_intervals, str, HEADS),
    ("list.csv", read_on_off, str, ON_OFF),
    ("up", read_mahimahi, str, MAHIMAHI),
    ("bins.csv", read_recording, behind("trace,direction,bin,packets"), BINS),
    ("ai.csv", read_ai_benchmark, behind("model,ai_score"), SCORES),
    ("phones.csv", read_recording, behind(PHONES_HEAD), PHONES),
    ("links.csv", read_recording, behind("trace,t_s,bps"), CAPACITY),
    ("state_traces.json", read_flash, logs, FLASH_LOGS),
    ("log.json", read_flash, str, FLASH_FILES),
    ("client_trace", read_fedscale, pickle.dumps, FEDSCALE),
]
FILES = [(name, read, write, content, said) for name, read, write, rows in DOORS for content, said in rows]


NAMES = [f"{name}-{said}" for name, *_, said in FILES]


@pytest.mark.parametrize(("name", "read", "write", "content", "said"), FILES, ids=NAMES)
def test_a_bad_file_is_one_line_with_the_file_the_place_and_what_was_expected(
    name, read, write, content, said, tmp_path
):
    path, written = tmp_path / name, write(content)
    path.write_bytes(written if isinstance(written, bytes) else str(written).encode(errors="surrogateescape"))
    with in_one_line(rf"^{re.escape(str(path))}: .*{re.escape(said)}"):
        read(path)


LENGTHS_BESIDE = [
    ("0,10\n", "has no length of device 1"),
    ("0,10\n1,7\n", "device 1: expected a length of at least 8 s, when it starts or ends a period in "),
    ("0,10\n0,20\n", "line 3: device: expected each device once (got 0)"),
    ("0,10\nx,20\n", "line 3: device: expected a whole number from 0 to 9999999"),
    ("0,10\n1,0\n", "line 3: length_s: expected a finite number above 0, up to"),
    ("0,10\n1,\n", "line 3: length_s: expected a finite number"),
    ("", "holds no rows"),
]
PERIODS, STATES = "device,start_s,end_s\n0,0,5\n1,2,8\n", "0,on,10\n1,off,5,7,20\n"
BESIDE = [(PERIODS, f"device,length_s\n{rows}", said) for rows, said in LENGTHS_BESIDE] + [
    (PERIODS, "device,end_s\n0,10\n", "column 'length_s' is missing"),
    (STATES, "device,length_s\n0,12\n1,19\n", "device 1: expected a length of at least 20 s, when it starts or ends"),
    (STATES, "device,length_s\n0,9\n1,30\n", "device 0: expected a length of at least 10 s, when it starts or ends"),
    (STATES, "device,length_s\n1,30\n", "has no length of device 0"),
]


@pytest.mark.parametrize(("recording", "lengths", "said"), BESIDE)
def test_a_bad_file_of_lengths_is_one_line_and_nothing_is_written(recording, lengths, said, tmp_path):
    (tmp_path / "periods.csv").write_text(recording)
    (tmp_path / "lengths.csv").write_text(lengths)
    with in_one_line(re.escape(f"lengths.csv: {said}")):
        convert(tmp_path / "periods.csv", tmp_path / "out.parquet", lengths=tmp_path / "lengths.csv")
    assert not (tmp_path / "out.parquet").exists()


def rounds(**options: object) -> dict[str, object]:
    return {"slots": "rounds", **options}


FILE = {"file": "x"}
MODELS = [
    ("tabel", {}, "availability.model: unknown model 'tabel', did you mean 'table'? known: always, table, renewal"),
    ("bernoulli", {"probability": 0.0}, "probability: input should be greater than 0 (got 0.0)"),
    ("bernoulli", rounds(probability=[0.5, 0.5]), "probability: is a list of 2 numbers, but devices.count is 3"),
    ("bernoulli", rounds(probability=[0.5, 1.5, 0.1]), "probability[1]: input should be less than or equal to 1"),
    ("bernoulli", rounds(**FILE, probability=0.5), "file = 'x' needs probability = 1, not"),
    ("bernoulli", {**FILE, "slot_s": 1.0}, "file = 'x' does not go with slot_s = "),
    ("bernoulli", rounds(if_empty="sleep"), "if_empty: input should be 'force' or 'wait'"),
    ("bernoulli", rounds(file="nowhere"), "availability.file: no file 'nowhere'; give a path"),
    ("markov", {}, "availability.slot_s: expected"),
    ("markov", {"slots": "round"}, "slots: input should be 'rounds'"),
    ("markov", rounds(slot_s=1.0), "model 'markov': availability: slots = 'rounds' does not go with slot_s = 1"),
    ("markov", {"join_probability": [0.5]}, "join_probability: is a list of 1 numbers, but devices.count is 3"),
    ("markov", {"leave_probability": [0.5, 0.5]}, "leave_probability: is a list of 2 numbers, but devices.count"),
    ("markov", {"leave_probability": [0.5, 1, 0.1]}, "leave_probability[1]: input should be less than 1 (got 1)"),
    ("solar", rounds(), "availability.slots: is an option of model 'table' or 'bernoulli' or 'markov', not"),
    ("solar", {"day_s": 2.0, "day_rounds": 2.0}, "day_rounds = 2 does not go with day_s = 2"),
    ("periodic", {"on_s": 9e9}, "on_s (9e+09) must not be above period_s"),
    ("arrival", {"join_every_s": 3.0, "leave_after_rounds": 5}, "join_every_s is in seconds and leave_after_round"),
    ("arrival", {"leave_first": "oldest"}, "leave_first: input should be 'lowest' or 'highest'"),
    ("arrival", {"if_empty": "force"}, "if_empty is for times in rounds, such as join_every_rounds"),
    ("arrival", {"at_start": 4}, "availability.at_start (4) must not be above devices.count (3)"),
    ("round_robin", {"groups": 2, "turn_s": 5.0, "overlap_s": 6.0}, "overlap_s (6) must not be above "),
    ("round_robin", {"if_empty": "force"}, "availability.if_empty: is an option of model "),
    ("round_robin", {"at_once": 1, "overlap_devices": 1}, "overlap_devices (1) must be below at_once (1)"),
    ("round_robin", {"at_once": 4}, "availability.at_once (4) must not be above devices.count (3)"),
    ("round_robin", {"groups": 2, "at_once": 2}, "at_once = 2 does not go with groups"),
    ("round_robin", {"overlap_s": 2.0, "turn_rounds": 2}, "turn_rounds = 2 needs overlap_s = 0"),
    ("round_robin", {"turn_s": 2.0, "turn_rounds": 2}, "turn_rounds = 2 does not go with turn_s"),
    ("round_robin", {"after_end": "raise", "turn_rounds": 2}, "turn_rounds = 2 needs after_end = '"),
    ("table", {}, "model 'table': availability.file: field required"),
    ("table", {"file": "nowhere"}, "availability.file: no file 'nowhere'; give a path or one of: sample-week"),
    ("table", rounds(file="nowhere"), "availability.file: no file 'nowhere'; give a path"),
    ("table", {"file": "traces", "slot_s": 3.0}, "availability.file: 'traces' is a folder, not a file; give a path"),
    ("table", {**FILE, "after_end": "loop"}, "after_end: input should be 'raise', 'wrap' or 'absent'"),
    ("table", rounds(**FILE, slot_s=1.0), "slots = 'rounds' does not go with slot_s = 1"),
    ("table", rounds(**FILE, length_s=1.0), "length_s = 1 does not go with slots = 'rounds'"),
    ("table", {**FILE, "if_empty": "force"}, "model 'table': availability: if_empty = 'force' needs slot_s: it is"),
    ("renewal", {"sessions_per_week": 1e6}, "1.14e+06 sessions of a device; expected at most 20,000"),
    ("renewal", {"sessions_per_week": 20_000.0, "length_s": 6 * 86_400.0 + 1.0}, "2e+04 sessions of a device"),
    ("renewal", {"length_s": 4e9}, "sessions of a device; expected at most 20,000"),
]


@pytest.mark.parametrize(("model", "options", "said"), MODELS)
def test_a_bad_option_of_a_model_is_one_line_that_names_the_key(model, options, said):
    with in_one_line(re.escape(said)):
        make_availability(AvailabilityConfig(model=model, **options), 3, Streams(0))


PROGRAMMES = [
    ("table", "0,1,0\n1,0,2\n", "line 3: column '2': expected 0 or 1 (got 2)"),
    ("table", "0,1,0\n1,0.5,0\n", "line 3: column '1': expected 0 or 1 (got 0.5)"),
    ("table", "0,yes,0\n1,1,0\n", "line 2: column '1': expected 0 or 1 (got yes)"),
    ("table", "0,1,\n1,1,0\n", "line 2: column '2': expected 0 or 1 (got nan)"),
    ("table", "0,1,-1\n1,1,0\n", "line 2: column '2': expected 0 or 1 (got -1)"),
    ("table", "0,1,1\n1,1\n", "line 3: column '2': expected 0 or 1 (got nan)"),
    ("table", "0,1,1\n1,1,0,1\n", "line 3: expected 3"),
    ("table", "0,1,1\n0,1,0\n", "line 3: device: expected each device once (got 0)"),
    ("table", "0,1,1\nx,1,0\n", "line 3: device: expected a whole number from 0"),
    ("table", "0,1,1\n5,1,0\n", "has no row of device 1; expected one of each from 0 to 5"),
    ("table", "", "holds no rows; expected device, 1, 2"),
    ("table", "0,0,0\n1,0,0\n2,1,0\n", "every cell of the first 2 devices is 0, so "),
    ("table", "0,1,0\n", "is a trace of 1 devices, but devices.count is 2"),
    ("bernoulli", "0,1,0\n", "is a trace of 1 devices, but devices.count is 2"),
    ("bernoulli", "0,1,0\n1,1.5,0\n", "line 3: column '1': expected a probability from 0 to 1 (got 1.5)"),
    ("bernoulli", "0,1,0\n1,-0.1,0\n", "line 3: column '1': expected a probability from 0 to 1 (got -0.1)"),
    ("bernoulli", "0,1,0\n1,often,0\n", "line 3: column '1': expected a probability from 0 to 1 (got often)"),
    ("bernoulli", "0,1,0\n1,,0\n", "line 3: column '1': expected a probability from 0 to 1 (got nan)"),
]
"""Rows behind ``device,1,2``."""
PROGRAMME_HEADS = [
    ("table", "1,2\n1,0\n", "column 1: expected 'device'"),
    ("table", "device,1,3\n0,1,0\n", "column 3: expected '2'"),
    ("table", "device,1,end_s\n0,1,0\n", "column 3: expected '2'"),
    ("table", "device\n0\n", "column 2: expected '1'"),
]
TABLES = [(model, f"device,1,2\n{rows}", said) for model, rows, said in PROGRAMMES] + PROGRAMME_HEADS


@pytest.mark.parametrize(("model", "text", "said"), TABLES)
def test_a_bad_programme_is_one_line_with_file_row_and_column(model, text, said, tmp_path):
    path = tmp_path / "programme.csv"
    path.write_text(text)
    with in_one_line(rf"^{re.escape(str(path))}: .*{re.escape(said)}"):
        make_availability(AvailabilityConfig(model=model, file=str(path), slots="rounds"), 2, Streams(0))
