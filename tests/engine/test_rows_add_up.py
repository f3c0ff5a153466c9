"""Random runs whose rows must add up: what `edgesim check` sums, and powers, availability, batteries, counts, merges.

The checks here share no code with the package: availability is asked of the raw intervals, batteries are replayed,
tasks are put together from the rows.
"""

import json
import math
import tomllib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from whole_runs import phones, write_rows

from edgesim.analysis.check import run_faults
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

PAYLOAD_BITS = 6e6
BAND_HZ = 4e6
CLOSE_S = 1e-6
"""Instants nearer than this are the same: up to 1e-9 of a deadline, and 1e-6 of it where a run stops."""

Values = dict[str, object]


def pick(random: np.random.Generator, *choices: object) -> object:
    return choices[random.integers(len(choices))]


def draw_availability(random: np.random.Generator, count: int, folder: Path) -> tuple[Values, list[list[tuple]], float]:
    """A availability model, the raw intervals of each device, and the length after which they repeat (inf: never)."""
    if random.random() < 0.25:
        return {}, [[(0.0, math.inf)]] * count, math.inf
    length_s = float(random.uniform(4, 20))
    intervals = []
    for _ in range(count):
        edges_s = np.sort(random.uniform(0, length_s, 2 * random.integers(1, 6))).round(random.integers(1, 6))
        intervals.append([(a, b) for a, b in edges_s.reshape(-1, 2).tolist() if b > a])
    rows = [(k, a, b, length_s) for k, spans in enumerate(intervals) for a, b in spans]
    file = write_rows(folder / "there.csv", "device,start_s,end_s,length_s", rows)
    after = pick(random, "wrap", "wrap", "absent")
    interruption = pick(random, "abort", "pause", "ignore")
    values = {"model": "table", "file": file, "after_end": after, "interruption": interruption}
    return values, intervals, length_s if after == "wrap" else math.inf


def draw_devices(random: np.random.Generator, count: int, folder: Path, own: bool) -> Values:
    devices: Values = {"count": count, "idle_power_w": pick(random, 0.0, 0.0, 0.05)}
    if own:
        rows = [(random.uniform(0.005, 0.08), random.uniform(2e6, 6e7)) for _ in range(count)]
        devices |= phones(folder, *rows)["devices"]
    else:
        devices["mu_samples_per_s"] = pick(random, 20.0, 60.0)
    if random.random() < 0.4:
        devices |= {"battery_j": float(random.uniform(1.5, 8)), "battery_reserve": 0.1}
        start = "drawn" if random.random() < 0.3 else float(random.uniform(0.3, 1))
        devices |= {"battery_start": start, "recharge_w": pick(random, 0.1, 0.5, 1.0)}
    return devices


def draw_round(random: np.random.Generator, count: int, own: bool) -> Values:
    tmax_s = float(random.uniform(0.5, 1.2))
    knobs: Values = {"payload_bits": PAYLOAD_BITS, "tmax_s": tmax_s}
    if random.random() < 0.4:
        knobs["download_s"] = "link" if own and random.random() < 0.5 else float(random.uniform(0.01, 0.2))
    protocol = pick(random, "synchronous", "synchronous", "buffered", "asynchronous")
    by_count = protocol != "synchronous" or random.random() < 0.5
    if by_count:
        knobs |= {"admission": "count", "count": int(random.integers(1, count + 1))}
    if protocol != "synchronous":
        options = {"protocol_options": {"buffer": int(random.integers(1, 5))}} if protocol == "buffered" else {}
        return knobs | {"protocol": protocol} | options
    knobs["close"] = pick(random, "arrivals", "arrivals", "deadline")
    knobs["late"] = pick(random, "drop", "keep")
    knobs["delay_knowledge"] = pick(random, "known", "planned", "reported")
    either = ["candidates"] if knobs["delay_knowledge"] == "reported" else ["candidates", "selected"]
    knobs["computes"] = pick(random, *either)
    knobs["min_candidates"] = int(random.integers(1, 3))
    if knobs["delay_knowledge"] == "planned":
        knobs["plan_quantile"] = pick(random, 0.3, 0.6, 0.9)
    if not own:
        knobs["allocator"] = pick(random, "least", "equal_share", "proportional")
        if knobs["allocator"] == "least":
            knobs["leftover"] = pick(random, "idle", "equal_finish")
    if by_count and knobs["close"] == "arrivals":
        knobs["over_commitment"] = pick(random, 1.0, 1.3, 2.0)
    if knobs["late"] == "keep" and knobs["close"] == "arrivals" and random.random() < 0.2:
        knobs["moving_deadline"] = 0.25
    return knobs


def draw_topology(random: np.random.Generator, protocol: object) -> Values:
    if random.random() < 0.6:
        return {}
    if protocol == "synchronous" and random.random() < 0.6:
        every = int(random.integers(1, 4))
        return {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": every}
    return {"file": "three-cells"}


def draw(number: int, folder: Path) -> tuple[Values, list[list[tuple]], float]:
    random = np.random.default_rng(number)
    count = int(random.integers(4, 13))
    sharing = pick(random, "reserved", "reserved", "reshared", "own")
    availability, intervals, length_s = draw_availability(random, count, folder)
    knobs = draw_round(random, count, sharing == "own")
    tmax_s = float(knobs["tmax_s"])  # type: ignore[arg-type]
    rounds = int(random.integers(5, 20))
    values: Values = {
        "seed": number,
        "devices": draw_devices(random, count, folder, sharing == "own"),
        "radio": {"bandwidth_hz": BAND_HZ, "sharing": sharing, "fading": pick(random, "none", "rayleigh")},
        "topology": draw_topology(random, knobs.get("protocol", "synchronous")),
        "availability": availability,
        "round": knobs,
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 8, "pretrain": True},
    }
    values |= {"rounds": rounds} if random.random() < 0.5 else {"stop_at_s": float(random.uniform(1, rounds)) * tmax_s}
    synchronous = "protocol" not in knobs
    if synchronous and knobs["late"] == "drop" and "aggregation" not in values["topology"] and random.random() < 0.3:  # type: ignore[operator]
        values["algorithm"] = {"name": "safa", "lag_tolerance": 2}
        if knobs.get("admission") == "count":
            values["selection"] = {"policy": "safa"}
    if random.random() < 0.3 and not (synchronous and knobs["late"] == "drop"):
        values["staleness"] = {"limit": int(random.integers(0, 3))}
    if number % 12 == 0:
        values["data"] = {"partition": "iid", "samples_per_device": 12}
        values["learning"] |= {"training": "real", "pretrain": False, "back_end": "loop"}  # type: ignore[operator]
        values["evaluation"] = {"every": 2, "samples": 40}
    return values, intervals, length_s


def draw_motion(number: int, values: Values, folder: Path) -> Values:
    """A config with devices that move, also far enough to change stations between tasks."""
    random = np.random.default_rng([number, 1])
    model = pick(random, "waypoint", "direction", "manhattan", "recorded")
    motion: Values = {"model": model}
    if model == "recorded":
        count, t_s = values["devices"]["count"], np.arange(0.0, 60.0, 4.0)  # type: ignore[index]
        rows = [(k, t, random.uniform(-200, 200), random.uniform(-200, 200)) for k in range(count) for t in t_s]
        file = write_rows(folder / "ways.csv", "device,t_s,x_m,y_m", rows)
        motion |= {"file": file, "after_end": pick(random, "wrap", "hold")}
    else:
        motion["speed_mps"] = pick(random, [1.0, 2.0], [20.0, 40.0], [200.0, 300.0])
    radio: Values = {"shadowing": pick(random, "map", "map", "per_run", "per_round"), "grid_m": pick(random, 5.0, 50.0)}
    knowledge = pick(random, "present", "straight", "known", "worst")
    return values | {
        "mobility": motion,
        "radio": values["radio"] | radio,  # type: ignore[operator]
        "round": values["round"] | {"path_knowledge": knowledge},  # type: ignore[operator]
    }


class Told:
    """The tables of one run, and what the config says of powers and availability."""

    def __init__(self, folder: Path, intervals: list[list[tuple]], length_s: float) -> None:
        for name in ("rounds", "activities", "updates", "metrics", "devices", "stations"):
            setattr(self, name, pd.read_parquet(folder / f"{name}.parquet"))
        self.folder = folder
        self.config = tomllib.loads((folder / "config.toml").read_text())
        self.end_s = json.loads((folder / "run.json").read_text())["t_end_s"]
        self.intervals, self.length_s = intervals, length_s
        devices = self.config["devices"]
        sending_w = 10 ** ((devices["tx_power_dbm"] - 30) / 10) / devices["pa_efficiency"]
        self.power_w = {
            "upload": sending_w,
            "compute": devices["compute_power_w"],
            "download": devices["download_power_w"],
        }
        self.tasks: dict[tuple[int, int], pd.DataFrame] = {
            key: rows.sort_values(["t_start_s", "t_end_s"]) for key, rows in self.activities.groupby(["device", "task"])
        }
        self.spans = {
            device: [(r.t_start_s, r.t_end_s, self.power_w[r.activity]) for r in rows.itertuples()]
            for device, rows in self.activities.sort_values("t_start_s").groupby("device")
        } | {key: [] for key in set(range(devices["count"])) - set(self.activities["device"])}
        share, everyone = devices.get("battery_start", 0.0), np.arange(devices["count"])
        share = Streams(self.config["seed"]).uniform("battery", everyone) if share == "drawn" else share
        self.start_j = np.zeros(len(everyone)) + np.multiply(share, devices.get("battery_j", 0.0))
        self.last = int(self.rounds["round"].max()) if len(self.rounds) else 0
        self.synchronous = self.config["round"]["protocol"] == "synchronous"
        self.wires = "file" in self.config["topology"]
        placed = self.devices.drop_duplicates("device").set_index("device")["station"].to_dict()
        moved = self.metrics[self.metrics["name"] == "task_station"].set_index("key")["value"].astype(int).to_dict()
        if moved:
            assert moved.keys() == {f"{device}/{task}" for device, task in self.tasks}
        self.station = {(device, task): moved.get(f"{device}/{task}", placed[device]) for device, task in self.tasks}
        """Station of each task."""

    def values(self, name: str, key: str = "") -> dict[int, float]:
        rows = self.metrics[(self.metrics["name"] == name) & (self.metrics["key"] == key)]
        assert not rows["round"].duplicated().any()
        return dict(zip(rows["round"], rows["value"], strict=True))

    def is_there(self, device: int, t_s: float) -> bool:
        """Whether a device is there at an instant, by its raw intervals."""
        lap_s = t_s % self.length_s if math.isfinite(self.length_s) else t_s
        return any(a <= lap_s < b for a, b in self.intervals[device])

    def there_s(self, device: int, start_s: float, end_s: float) -> float:
        """Seconds of a span in which a device is there, by its raw intervals."""
        if math.isinf(self.length_s):
            return sum(max(0.0, min(b, end_s) - max(a, start_s)) for a, b in self.intervals[device])
        laps = range(int(start_s // self.length_s), int(end_s // self.length_s) + 1)
        shifts_s = [(lap * self.length_s, *span) for lap in laps for span in self.intervals[device]]
        return sum(max(0.0, min(b + lap_s, end_s) - max(a + lap_s, start_s)) for lap_s, a, b in shifts_s)


def end_of(rows: pd.DataFrame) -> str:
    """How a task ended: as its last row says; a task that was taken and sent nothing was dropped."""
    last = rows.iloc[-1]
    return "dropped" if last["outcome"] == "done" and last["activity"] != "upload" else str(last["outcome"])


def check_tasks(told: Told) -> None:
    """A task stands in one round, goes on where it paused, and moves the payload each way, or a part if it was cut."""
    for rows in told.tasks.values():
        assert rows["round"].nunique() == 1
        steps = rows["activity"].to_numpy()
        paused = rows["outcome"].to_numpy()[:-1] == "paused"
        assert (steps[1:][paused] == steps[:-1][paused]).all()
        assert rows["outcome"].iloc[-1] != "paused"
        sent, got = (rows.loc[rows["activity"] == way, "bits"].sum() for way in ("upload", "download"))
        assert max(sent, got) <= PAYLOAD_BITS * (1 + 1e-9)
        if end_of(rows) == "done":
            assert sent == pytest.approx(PAYLOAD_BITS)
        if len(set(steps)) > 1 and "download" in steps:
            assert got == pytest.approx(PAYLOAD_BITS)
    for _, rows in told.activities.groupby("device"):
        assert (np.diff(rows.sort_values(["t_start_s", "t_end_s"])["task"]) >= 0).all()


def check_energy_and_bits(told: Told) -> None:
    acts = told.activities
    seconds = acts["t_end_s"] - acts["t_start_s"]
    assert (seconds > 0).all()
    joules = seconds * acts["activity"].map(told.power_w).astype(float)
    assert acts["energy_j"].to_numpy() == pytest.approx(joules.to_numpy())
    assert set(acts["round"]) <= {*told.rounds["round"], told.last + 1}
    uploads = acts[acts["activity"] == "upload"]
    if told.config["radio"]["sharing"] == "own":
        phones = pd.read_csv(told.config["devices"]["profile"]).set_index("device")["link_bps"]
        bits = uploads["device"].map(phones) * seconds[uploads.index]
        assert uploads["bits"].to_numpy() == pytest.approx(bits.to_numpy())
    check_bits_down(told)


def check_bits_down(told: Told) -> None:
    """What the devices were sent stands in the round in which their tasks ended, also in one that the end cut."""
    of_row = dict(zip(told.rounds["round"], told.rounds["bits_down"], strict=True)) | told.values("bits_down")
    assert set(told.values("bits_down")) <= {told.last + 1}
    if told.config["round"]["download_s"] != 0.0:
        downloads = told.activities[told.activities["activity"] == "download"]
        expected = downloads.groupby("round")["bits"].sum().to_dict()
    elif told.wires or told.config["algorithm"]["name"] == "safa":
        # Tasks that were cut while the model was on the wires have no rows; SAFA does not send the model to all.
        return
    else:
        expected = pd.Series([rows["round"].iloc[0] for rows in told.tasks.values()]).value_counts() * PAYLOAD_BITS
        expected = expected.to_dict()
    found = {number: bits for number, bits in of_row.items() if bits}
    assert found == pytest.approx({number: bits for number, bits in expected.items() if bits})


def charges_j(told: Told, device: int, until_s: float) -> tuple[float, float]:
    """The charge of a device at an instant, and the joules that it has idled for, replayed on its rows."""
    devices = told.config["devices"]
    idle_w, capacity_j, recharge_w = devices["idle_power_w"], devices["battery_j"], devices["recharge_w"]
    charge_j, t_s, idle_j = float(told.start_j[device]), 0.0, 0.0
    # The empty span at the end stands for rest until then.
    for start_s, end_s, draw_w in [*told.spans[device], (until_s, until_s, 0.0)]:
        for to_s, power_w in ((min(start_s, until_s), 0.0), (min(end_s, until_s), draw_w)):
            passed_s, drain_w = max(0.0, to_s - t_s), power_w + idle_w - recharge_w
            on_s = min(passed_s, charge_j / drain_w) if drain_w > 0 else passed_s
            idle_j += idle_w * on_s + min(idle_w, recharge_w) * (passed_s - on_s)
            charge_j = min(max(charge_j - drain_w * passed_s, 0.0), capacity_j)
            t_s = max(t_s, to_s)
    return charge_j, idle_j


def check_batteries(told: Told) -> None:
    """Replays every battery on the rows of its device."""
    devices, idle = told.config["devices"], told.values("idle_j")
    if "battery_j" not in devices:
        assert sum(idle.values()) == pytest.approx(devices["idle_power_w"] * devices["count"] * told.end_s, abs=1e-9)
        return
    least, mean = told.values("battery_j", "least"), told.values("battery_j", "mean")
    ends_s = dict(zip(told.rounds["round"], told.rounds["t_end_s"], strict=True)) | {told.last + 1: told.end_s}
    assert set(least) >= set(told.rounds["round"])
    for number in least:
        charges, idled = np.array([charges_j(told, k, ends_s[number]) for k in range(devices["count"])]).T
        assert (least[number], mean[number]) == pytest.approx((charges.min(), charges.mean()), abs=1e-5)
    if least:
        assert sum(idle.values()) == pytest.approx(idled.sum(), abs=1e-5)
    own = told.metrics[(told.metrics["name"] == "idle_j") & (told.metrics["key"] != "")]
    assert own["value"].sum() == pytest.approx(sum(idle.values()), abs=1e-9) or own.empty


def check_availability(told: Told) -> None:
    ignored = told.config["availability"]["interruption"] == "ignore"
    for row in told.activities.itertuples():
        away_s = row.t_end_s - row.t_start_s - told.there_s(row.device, row.t_start_s, row.t_end_s)
        assert row.away_s == pytest.approx(away_s if ignored else 0.0, abs=CLOSE_S)
        if not ignored:
            assert away_s <= CLOSE_S


def stations(told: Told, rows: pd.DataFrame) -> np.ndarray:
    """Station of the task of each row."""
    return np.array([told.station[key] for key in zip(rows["device"], rows["task"], strict=True)], dtype=int)


def check_band(told: Told) -> None:
    """A band that is shared anew is used up while anybody sends; `run_faults` knows what reserved ones carry."""
    sharing, uploads = told.config["radio"]["sharing"], told.activities[told.activities["activity"] == "upload"]
    assert sharing != "own" or (told.rounds["bandwidth_hz"] == 0).all()
    for station, rows in uploads.groupby(stations(told, uploads)) if sharing == "reshared" else ():
        band_hz = told.stations.set_index("station").loc[station, "bandwidth_hz"]
        edges_s = np.unique(rows[["t_start_s", "t_end_s"]].to_numpy())
        middles_s = (edges_s[:-1] + edges_s[1:])[:, None] / 2
        on_air = (rows["t_start_s"].to_numpy() < middles_s) & (rows["t_end_s"].to_numpy() > middles_s)
        hertz_seconds = rows["bandwidth_hz"] @ (rows["t_end_s"] - rows["t_start_s"])
        assert hertz_seconds == pytest.approx(band_hz * np.diff(edges_s)[on_air.any(axis=1)].sum())
        assert (rows["bandwidth_hz"] <= band_hz * (1 + 1e-9)).all()


def check_counts(told: Told) -> None:
    knobs, rounds = told.config["round"], told.rounds
    ends = pd.DataFrame(
        [(*key, rows["round"].iloc[0], end_of(rows)) for key, rows in told.tasks.items()],
        columns=["device", "number", "round", "end"],
    )
    for row in rounds.itertuples():
        in_row = ends[ends["round"] == row.round]
        if told.synchronous:
            assert row.selected <= row.candidates
            mine = ends[ends["number"] == row.round]
            here = mine[mine["round"] == row.round]
            assert row.arrived == (here["end"] == "done").sum()
            late = (here["end"] == "late").sum() + (mine["round"] > row.round).sum()
            # A device that left while the model was on the wires, and came back too late to begin, has no row.
            assert row.late == late or (told.wires and row.late > late)
            dropped = (here["end"] == "dropped").sum()
            if knobs["computes"] == "selected" and not told.wires:
                assert row.dropped == dropped
            elif not told.wires:
                assert row.dropped <= dropped
            assert not (in_row["end"] == "cancelled").any()
        else:
            assert row.late == 0
            assert row.arrived == (in_row["end"] == "done").sum()
            assert row.dropped >= (in_row["end"] == "dropped").sum()
            assert told.wires or row.dropped == (in_row["end"] == "dropped").sum()
            assert row.candidates >= len(in_row)
            assert not (in_row["end"].isin(["late", "unscheduled"])).any()
    if not told.synchronous and not told.wires:
        begun = sum(told.rounds["selected"])
        assert begun <= len(told.tasks)
        if told.last + 1 not in set(told.activities["round"]):
            assert begun == len(told.tasks)
    if "count" in knobs and told.synchronous:
        assert (rounds["selected"] <= math.ceil(knobs["over_commitment"] * knobs["count"] - 1e-9)).all()
    cancelled = told.activities[told.activities["outcome"] == "cancelled"]
    assert (cancelled["t_end_s"] <= told.end_s).all()
    assert (cancelled["round"] >= told.last).all()
    # What was still going on when the run stopped ends then.
    after = told.activities[told.activities["round"] > told.last]
    assert (after["t_end_s"] <= told.end_s + 1e-9).all()
    assert not after["outcome"].isin(["late"]).any()


def check_candidates(told: Told) -> None:
    """All that are there, have their reserve and are not between a task's begin and its last row are candidates."""
    config, devices = told.config, told.config["devices"]
    if not told.synchronous or config["availability"]["interruption"] != "abort":
        return
    reserve_j = devices.get("battery_reserve", 0.0) * devices.get("battery_j", 0.0)
    begins_s = dict(zip(told.rounds["round"], told.rounds["t_start_s"], strict=True))
    busy = [(device, begins_s.get(number), rows["t_end_s"].max()) for (device, number), rows in told.tasks.items()]
    for row in told.rounds.itertuples():
        at_work = {device for device, begin_s, end_s in busy if begin_s is not None and begin_s < row.t_start_s < end_s}
        there = [k for k in range(devices["count"]) if k not in at_work and told.is_there(k, row.t_start_s)]
        if "battery_j" in devices:
            there = [k for k in there if charges_j(told, k, row.t_start_s)[0] >= reserve_j - 1e-9]
        assert row.candidates == len(there)


def check_staleness(told: Told) -> None:
    """Models that the server of a device sent between the round of a task and that of its merge: those that it made of
    updates, and averages in the cloud of what any server made since the last time.
    """
    server_of = dict(zip(told.stations["station"], told.stations["server"], strict=True))
    server = pd.Series(stations(told, told.updates), told.updates.index).map(server_of)
    every, apart, made = told.config["topology"].get("cloud_every"), set[str](), dict[int, set[str]]()
    for round in range(1, told.last + 1):
        made[round] = set(server[told.updates["round"] == round])
        apart |= made[round]
        if every is not None and round % every == 0:
            made[round], apart = set(server_of.values()) if apart else set(), set()
    for row, of in zip(told.updates.itertuples(), server, strict=True):
        assert row.staleness == sum(of in made[round] for round in range(row.task, row.round))


def check_updates(told: Told) -> None:
    """Each update comes from one task that arrived in its round; without reasons not to, every arrival is merged."""
    updates = told.updates
    assert not updates.duplicated(["device", "task"]).any()
    merged = defaultdict(set)
    for row in updates.itertuples():
        rows = told.tasks[row.device, row.task]
        assert (end_of(rows), rows["round"].iloc[0]) == ("done", row.round)
        merged[row.round].add((row.device, row.task))
    if told.synchronous:
        check_staleness(told)
    if "limit" not in told.config["staleness"]:
        for row in told.rounds.itertuples():
            ended = {key for key, rows in told.tasks.items() if rows["round"].iloc[0] == row.round}
            assert merged[row.round] == {key for key in ended if end_of(told.tasks[key]) == "done"}
    if told.config["learning"]["training"] == "real":
        jobs = told.rounds["jobs_trained"]
        if told.config["round"]["protocol"] == "asynchronous":
            assert len(updates) <= jobs.sum() <= len(told.tasks)
        else:
            assert jobs.tolist() == [len(merged[number]) for number in told.rounds["round"]]


CHECKS = (
    check_tasks, check_energy_and_bits, check_batteries, check_availability, check_band, check_counts, check_candidates,
    check_updates,
)  # fmt: skip


def run_and_check(number: int, folder: Path, moves: bool = False) -> Told:
    """The first config of a number's tries that is not refused, run and checked."""
    for again in range(20):
        tried = folder / str(again)
        tried.mkdir()
        values, intervals, length_s = draw(number + 10_000 * again, tried)
        if moves:
            values = draw_motion(number + 10_000 * again, values, tried)
        try:
            simulation.run(parse(values, "drawn"), tried / "run")
        except EdgesimError as error:
            refused = str(error)
            continue
        told = Told(tried / "run", intervals, length_s)
        for check in CHECKS:
            check(told)
        assert run_faults(told.folder) == []
        return told
    raise AssertionError(f"number {number}: every try was refused: {refused}")


def blocks(size: int, count: int, first: int = 0) -> list[object]:
    """Numbers of runs in blocks, of which all but the first are slow."""
    starts = range(first, first + size * count, size)
    return [pytest.param(range(k, k + size), marks=() if k == first else pytest.mark.slow) for k in starts]


@pytest.mark.whole_family
@pytest.mark.parametrize("numbers", blocks(4, 18), ids=str)
def test_the_rows_of_random_runs_add_up(tmp_path, numbers):
    for number in numbers:
        (tmp_path / str(number)).mkdir()
        run_and_check(number, tmp_path / str(number))


@pytest.mark.whole_family
@pytest.mark.parametrize("numbers", blocks(3, 17, 1_005), ids=str)
def test_the_rows_of_random_runs_with_devices_that_move_add_up(tmp_path, numbers):
    changed = []
    for number in numbers:
        (tmp_path / str(number)).mkdir()
        told = run_and_check(number, tmp_path / str(number), moves=True)
        changed += [len({told.station[key] for key in told.tasks if key[0] == device}) for device in range(4)]
    # Other blocks may happen to draw single stations and slow devices alone.
    assert numbers[0] > 1_005 or max(changed) > 1
