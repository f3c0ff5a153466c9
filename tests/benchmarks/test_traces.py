"""What large traces cost; beside each number stands what the project aims at.

Run with ``make bench``; the figures of a machine go into ``extra_info`` of pytest-benchmark's output.
"""

import json
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import tomli_w
from sizes import IS_LEAST, cpu_s, size, wall_s
from whole_runs import TIMED, merged

from edgesim.folder.records import read_table
from edgesim.streams import Streams
from edgesim.traces.interval_file import write_intervals
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.models.renewal import Renewal
from edgesim.traces.readers import read_recording

PHONES = size(107_749, 500)
PERIODS_EACH = 28
CAPACITIES = size(500_000, 500)
WEEK_S = 604_800.0


def behaviour(phones: int) -> dict[int, dict[str, object]]:
    """A trace of the size of FedScale's: some three million periods, as lists of whole seconds."""
    rng = np.random.default_rng(0)
    days = rng.integers(5, 14, phones)
    edges = np.sort(rng.integers(0, 5 * 86_400, (phones, 2 * PERIODS_EACH)), axis=1).tolist()
    return {
        number + 1: {
            "duration": 1, "inactive": row[1::2], "finish_time": 86_400 * int(length), "active": row[::2], "model": "X",
        }
        for number, (row, length) in enumerate(zip(edges, days, strict=True))
    }  # fmt: skip


MEASURE = """
import json, resource, sys, time
from pathlib import Path
started = time.perf_counter()
{code}
used = resource.getrusage(resource.RUSAGE_SELF)
wall_s, cpu_s = time.perf_counter() - started, used.ru_utime + used.ru_stime
print(json.dumps(dict(wall_s=wall_s, cpu_s=cpu_s, peak_gib=used.ru_maxrss / 2**20)))
"""


def cost_of(code: str, *arguments: object) -> dict[str, float]:
    """Wall and processor seconds, and peak resident GiB, of a fresh process that runs the code."""
    command = [sys.executable, "-c", MEASURE.format(code=code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cost: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return cost


CONVERT = """
from edgesim.traces.convert import convert
convert(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def capacities(phones: int) -> dict[int, dict[str, float]]:
    """Speeds and links of so many phones, as FedScale's file has them."""
    rng = np.random.default_rng(0)
    speeds, links = rng.uniform(10, 300, phones), rng.uniform(100, 50_000, phones)
    rows = enumerate(zip(speeds.tolist(), links.tolist(), strict=True), 1)
    return {number: {"computation": speed, "communication": link} for number, (speed, link) in rows}


@pytest.mark.parametrize("made", [behaviour, capacities])
def test_converting_a_file_of_the_originals_size(benchmark, tmp_path, made):
    """Aim: under a minute and 2 GiB, for 107,749 devices and three million periods, or for 500,000 speeds and links."""
    path, phones = tmp_path / "original", PHONES if made is behaviour else CAPACITIES
    with path.open("wb") as file:
        pickle.dump(made(phones), file, protocol=4)
    cost = benchmark.pedantic(lambda: cost_of(CONVERT, path, tmp_path / "found.parquet"), rounds=1)
    found = read_recording(tmp_path / "found.parquet")
    if made is behaviour:
        assert found.available.device_count == phones
        assert len(found.available.device) > 27 * phones
    else:
        assert len(found.s_per_sample) == phones
    benchmark.extra_info |= cost | {"file_mb": path.stat().st_size / 1e6}


@pytest.fixture(scope="module")
def week() -> Intervals:
    return Renewal().intervals(PHONES, Streams(0))


MILLION = size(1_000_000, 1000)
SESSIONS_A_DAY = 15.5
"""Of a phone, those included that begin behind the instant asked about; each takes two normal draws."""

GENERATE = """
import numpy as np
from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces.models import make_availability
phones, t_s = int(sys.argv[1]), float(sys.argv[2])
week = make_availability(AvailabilityConfig(model="renewal"), phones, Streams(0))
assert 0.1 < week.available(np.arange(phones), t_s).mean() < 0.4
"""


@pytest.mark.parametrize("until", ["the first hour", "the week"])
def test_drawing_when_a_million_phones_are_available(benchmark, until):
    """Aim: the week under 30 s, the first hour in a fraction of that; beside it, as many bare normal draws."""
    t_s = 3600.0 if until == "the first hour" else WEEK_S - 1
    cost = benchmark.pedantic(lambda: cost_of(GENERATE, MILLION, t_s), rounds=1)
    # The process begins a day before the first instant.
    draws = 2 * MILLION * SESSIONS_A_DAY * (1 + t_s / 86_400)
    generator, some = np.random.default_rng(0), np.empty(MILLION)
    turns = range(round(draws / len(some)))
    normals_s = cpu_s(lambda: [generator.standard_normal(out=some) for _ in turns])
    benchmark.extra_info |= cost | {"normals_s": normals_s, "times_the_normals": cost["cpu_s"] / normals_s}


def test_bytes_per_interval_of_a_table(benchmark, week):
    """Aim: about 16 for the periods themselves, as much again to begin with where they are not made on demand."""

    def kept() -> float:
        tracemalloc.start()
        table = IntervalTable(week, "wrap")
        # At its last instant it has been asked about all of them.
        table.available(np.arange(PHONES), WEEK_S - 1)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size / len(week.device)

    benchmark.extra_info["bytes_per_interval"] = benchmark.pedantic(kept, rounds=1)


@pytest.mark.parametrize("question", ["available", "available_until", "next_available"])
@pytest.mark.parametrize("ids", [size(10_000, 50), PHONES])
def test_asking_about_many_devices_at_one_instant(benchmark, week, question, ids):
    """Aim: about 1 ms for 10,000 devices."""
    table, asked = IntervalTable(week, "wrap"), np.arange(ids)
    instants = iter(np.random.default_rng(0).uniform(0, 10 * WEEK_S, MILLION))
    arguments = (1e9,) if question == "available_until" else ()
    benchmark(lambda: getattr(table, question)(asked, next(instants), *arguments))


def test_a_million_questions_at_random_instants_over_100_000_devices(benchmark, week):
    """Aim: under 1 s; beside it, one binary search per question over all starts as NumPy does it."""
    table, rng = IntervalTable(week, "wrap"), np.random.default_rng(0)
    ids, when_s = rng.integers(0, size(100_000, PHONES), MILLION), rng.uniform(0, WEEK_S, MILLION)
    share = benchmark(lambda: table.available(ids, when_s)).mean()
    starts_s = np.sort(week.start_s)
    benchmark.extra_info["one_searchsorted_s"] = wall_s(lambda: np.searchsorted(starts_s, when_s))
    assert share == pytest.approx(0.2026, abs=size(0.01, 0.1))


REPLAY = """
from edgesim.base.text_file import read_toml
from edgesim.config_file import parse
from edgesim.simulation import composition
composition.run(parse(read_toml(Path(sys.argv[1])), "benchmark"), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("source", ["generated", "file"])
def test_a_week_of_107_749_phones_with_a_round_every_100_seconds(benchmark, tmp_path, week, source):
    """Aim: under 90 s and 2 GiB, timing only, 10 selected."""
    model, count = {"model": "renewal"}, size(6048, 36)
    if source == "file":
        write_intervals(tmp_path / "week.parquet", week)
        model = {"model": "table", "file": str(tmp_path / "week.parquet"), "after_end": "wrap"}
    a_round = {"tmax_s": 100.0, "close": "deadline", "payload_bits": 17_881_664.0, "computes": "selected"}
    a_round |= {"admission": "count", "count": 10, "allocator": "equal_share"}
    values = {"stop_at_s": 100.0 * count, "devices": {"count": PHONES}, "availability": model, "round": a_round}
    (tmp_path / "run.toml").write_text(tomli_w.dumps(merged(TIMED, values)))
    cost = benchmark.pedantic(lambda: cost_of(REPLAY, tmp_path / "run.toml", tmp_path / "run"), rounds=1)
    benchmark.extra_info |= cost
    rounds = read_table(tmp_path / "run", "rounds")
    assert len(rounds) == count
    assert rounds["selected"].tolist() == [10] * count
    assert IS_LEAST or rounds["candidates"].mean() / PHONES == pytest.approx(0.2026, abs=0.005)
