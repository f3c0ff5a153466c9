"""Runs of devices that move: at speed 0 they are those of today, and uploads carry what their ways let through."""

import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cell_files import plain_channel, write_cells
from refusals import in_one_line
from whole_runs import configs, merged, play, write_rows

from edgesim.analysis.band_use import band_use
from edgesim.analysis.runs import runs_of
from edgesim.config_file import parse
from edgesim.devices.places import place_in_disc
from edgesim.engine.estimates import PlannedEstimates
from edgesim.engine.make_world import make_world
from edgesim.engine.moving_shared_band import MovingSharedBand
from edgesim.engine.path_link import PathLink
from edgesim.folder.records import read_table
from edgesim.folder.run_schema import SCHEMAS
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation
from edgesim.streams import Streams

BITS = 17_881_664.0
WORKED_S = 6.089333333333
KNOWLEDGE = ("present", "straight", "known", "worst")
STILL = {"model": "direction", "speed_mps": [0.0, 0.0]}
FAST = {"model": "direction", "speed_mps": [20.0, 40.0], "turn_s": 5.0}


BASE = {
    "seed": 4,
    "rounds": 6,
    "devices": {"count": 30},
    "round": {"payload_bits": BITS},
    "data": {"dataset": "none"},
    "learning": {"training": "none"},
}
config = configs(BASE)


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.parquet").read_bytes() for name in SCHEMAS if name != "timing"}


LATE = {"late": "keep", "tmax_s": 0.6, "admission": "count", "count": 12, "allocator": "equal_share"}
BUFFER = {"protocol": "buffered", "admission": "count", "count": 10}
WORLDS = {
    "reserved": {"radio": {"fading": "rayleigh"}},
    "reshared": {"radio": {"sharing": "reshared"}, "round": {"leftover": "equal_finish"}},
    "cells": {"topology": {"file": "three-cells"}, "round": {"delay_knowledge": "reported"}},
    "edges": {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}},
    "late": {"round": LATE},
    "late on a shared band": {"round": LATE, "radio": {"sharing": "reshared", "fading": "rayleigh"}},
    "without rounds": {"round": BUFFER, "topology": {"file": "three-cells", "attach": "nearest"}},
    "two branches": {
        "radio": {"channel": "uma", "fading": "rayleigh"},
        "round": {"outage": 0.05},
        "devices": {"radius_m": 400.0},
    },
}


@pytest.mark.parametrize(("world", "knowledge"), [*zip(WORLDS, 2 * KNOWLEDGE, strict=True)])
def test_devices_of_speed_0_stand_still_to_the_last_bit(tmp_path, world, knowledge):
    sections = merged({"radio": {"shadowing": "per_run"}}, WORLDS[world])
    still = play(tmp_path / "still", BASE, sections)
    moving = play(tmp_path / "moving", BASE, sections, mobility=STILL, round={"path_knowledge": knowledge})
    # Which station a task had is told of devices that move alone.
    rows = [played.metrics.query("name != 'task_station'").reset_index(drop=True) for played in (still, moving)]
    pd.testing.assert_frame_equal(*rows)
    assert tables(still.folder) | {"metrics": b""} == tables(moving.folder) | {"metrics": b""}


def test_recorded_positions_that_never_change_are_devices_that_stand_still(tmp_path):
    x_m, y_m = place_in_disc(np.arange(30), 250.0, 10.0, Streams(4))
    ways = [(k, t_s, x_m[k].item(), y_m[k].item()) for k in range(30) for t_s in (0.0, 1.5, 40.0)]
    radio = {"radio": {"shadowing": "per_run"}}
    still = play(tmp_path / "still", BASE, radio)
    moving = play(tmp_path / "moving", BASE, radio, mobility=recorded(tmp_path, ways, "absent"))
    assert tables(still.folder) == tables(moving.folder)


def recorded(folder, rows, after_end="hold"):
    """The motion of devices along recorded ways."""
    file = write_rows(folder / "ways.csv", "device,t_s,x_m,y_m", rows)
    return {"model": "recorded", "file": file} | ({} if after_end == "absent" else {"after_end": after_end})


def world_of(tmp_path, *parts, **sections):
    """The world of devices that move in FedTeddi's environment without shadowing."""
    plain = {"radio": {"channel": plain_channel(tmp_path)}}
    return make_world(complete(parse(merged(BASE, plain, *parts, sections), "worked")), Streams(4))


@pytest.mark.parametrize("shadowing", ["map", "per_run"])
@pytest.mark.parametrize(
    ("ready_s", "due_s", "needs_hz"),
    [
        (10.0, 14.0, {"known": 259_692.680082369, "worst": 281_368.700555479, "straight": 259_692.680082369}),
        (8.0, 9.0, {"known": 1_003_040.458433171, "worst": 1_030_525.231111047, "straight": 1_003_040.458433171}),
    ],
)
def test_the_worked_plans_need_as_much_as_is_known_of_the_path(tmp_path, shadowing, ready_s, due_s, needs_hz):
    """On the worked leg, from (-100, 30) to (150, 90) at 15 m/s."""
    motion = recorded(tmp_path, [(0, 0, -100, 30), (0, float(np.hypot(250.0, 60.0) / 15.0), 150, 90)])
    world = world_of(tmp_path, mobility=motion, devices={"count": 1}, radio={"shadowing": shadowing})
    moving, ids = world.moving, np.array([0])
    for knowledge, need_hz in needs_hz.items():
        link = PathLink(moving, 0, knowledge, ready_s, lambda some: np.ones(len(some), dtype=int), world.rx_power_w)
        power_w = world.rx_power_w(ids, world.gain(ids, 1, ready_s, np.array([0])))
        asked = ids, np.array([BITS]), np.array([ready_s - 7.5]), due_s - 7.5, power_w, 7.5
        assert link.least_hz(*asked) == pytest.approx(need_hz, rel=1e-9)
    assert world.gain(ids, 1, ready_s, np.array([0])) == world.moving.gain(ids, 1, ready_s, np.array([0]))


def test_a_task_keeps_its_station_and_the_next_one_has_that_of_its_instant(tmp_path):
    """Two stations; the device walks past the middle between them, from 0 to 200 m at 20 m/s."""
    played = play(
        tmp_path / "run",
        BASE,
        mobility=recorded(tmp_path, [(0, 0, 0, 0), (0, 10, 200, 0)]),
        topology={"file": two_cells(tmp_path, -50.0, 150.0), "attach": "nearest"},
        devices={"count": 1},
        round={"close": "deadline", "payload_bits": 1e6},
        radio={"shadowing": "per_run"},
    )
    # The middle, x = 50 m, is passed at 2.5 s: rounds that begin at 0, 1 and 2 s are the west's.
    told = played.metric("task_station", "key")
    assert told.to_dict() == {f"0/{round}": float(round > 3) for round in range(1, 7)}
    assert played.metric("backhaul_bits").index.tolist() == [4, 5, 6]


def two_cells(folder, west_m=0.0, east_m=500.0):
    """Two stations on the x axis, of which the western one is beside the cloud."""
    return write_cells(folder, {"west": (west_m, 0.0), "east": (east_m, 0.0)}, [("west", "east", 1e9, 0.0)])


def estimates_at(world, ids, t_start_s):
    station = world.places.stations(ids, t_start_s)
    timeline = SimpleNamespace(world=world, ids=ids, station=station, t_start_s=t_start_s)
    return PlannedEstimates(timeline, world.bands_hz, None)


@pytest.mark.parametrize("shadowing", ["map", "per_run"])
@pytest.mark.parametrize("attach", ["strongest", "nearest"])
@pytest.mark.parametrize("knowledge", KNOWLEDGE)
def test_devices_leave_their_cells_at_the_worked_instant_as_far_as_their_paths_are_known(
    tmp_path, shadowing, attach, knowledge
):
    """From x = 100 to 400 m at 30 m/s between stations at 0 and 500 m; a second device turns around at 200 m."""
    ways = [(0, 0, 100, 0), (0, 10, 400, 0), (1, 0, 100, 0), (1, 3, 190, 0), (1, 6, 100, 0)]
    world = world_of(
        tmp_path,
        mobility=recorded(tmp_path, ways),
        topology={"file": two_cells(tmp_path), "attach": attach},
        radio={"shadowing": shadowing},
        round={"path_knowledge": knowledge},
        devices={"count": 2, "radius_m": 500.0},
    )
    estimates = estimates_at(world, np.arange(2), 1.0)
    leaves_s = WORKED_S - 1.0
    expected = {"present": [np.inf] * 2, "straight": [leaves_s] * 2}.get(knowledge, [leaves_s, np.inf])
    assert estimates.leaves_cell_s(np.array([0, 1]), 8.0).tolist() == pytest.approx(expected, abs=1e-9)
    assert estimates.leaves_cell_s(np.array([1, 0]), 8.0).tolist() == pytest.approx(expected[::-1], abs=1e-9)
    # Beyond the horizon nobody looks.
    assert estimates.leaves_cell_s(np.array([0]), 5.0).tolist() == [np.inf]


def carried_bits(world, uploads: pd.DataFrame, station: int = 0) -> np.ndarray:
    """Integral of the rate of each upload over its way, chord by chord, from positions asked at crossings alone."""
    link, side_m = world.moving.link, world.moving.chords.side_m
    total = np.zeros(len(uploads))
    for row, upload in enumerate(uploads.itertuples()):
        ids = np.array([upload.device])
        _, legs = world.moving.paths.legs_until(ids, upload.t_start_s, upload.t_end_s)
        for t0, t1, x0, y0, vx, vy in zip(*legs.columns, strict=True):
            edges = {t0, t1}
            for start, speed in ((x0, vx), (y0, vy)):
                if speed != 0.0:
                    first, last = sorted((start / side_m, (start + speed * (t1 - t0)) / side_m))
                    lines = np.arange(np.floor(first), np.ceil(last) + 1)
                    edges |= {float(t) for t in t0 + (lines * side_m - start) / speed if t0 < t < t1}
            for begin, end in pairwise(sorted(edges)):
                within_s = min(end, upload.t_end_s) - max(begin, upload.t_start_s)
                if within_s > 0:
                    middle = 0.5 * (begin + end) - t0
                    place = np.array([x0 + vx * middle]), np.array([y0 + vy * middle])
                    gain = world.moving.gains.mean_power_gain(ids, 1, np.array([station]), *place)
                    snr = world.rx_power_w(ids, gain).item() / (upload.bandwidth_hz * link.noise_w_per_hz)
                    total[row] += within_s * upload.bandwidth_hz * np.log2(1.0 + snr)
    return total


def world_again(*parts):
    """The world of a run of these sections, for what is asked of it later."""
    this = complete(config(**merged(*parts)))
    return make_world(this, Streams(this.seed))


def test_reserved_uploads_carry_the_integral_of_the_rate_over_their_ways(tmp_path):
    """Also those that were cut at the deadline; the integral is worked out here, chord by chord."""
    sections = {"mobility": FAST, "rounds": 10, "radio": {"grid_m": 7.0}}
    acts = play(tmp_path, BASE, sections).uploads
    assert {"done", "late"} <= set(acts["outcome"])
    assert acts["bits"].to_numpy() == pytest.approx(carried_bits(world_again(sections), acts), rel=1e-7)
    assert acts[acts["outcome"] == "done"]["bits"].to_numpy() == pytest.approx(BITS, rel=1e-12)


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_uploads_that_go_on_past_the_deadline_end_on_the_way_behind_it(tmp_path, sharing):
    """Deadlines of 0.3 s, in which a third of the payload gets through: the way is looked at again and again."""
    knobs = {"late": "keep", "tmax_s": 0.3, "admission": "count", "count": 10, "allocator": "equal_share"}
    sections = {"mobility": FAST, "rounds": 12, "round": knobs, "radio": {"sharing": sharing}}
    acts = play(tmp_path, BASE, sections).uploads.query("outcome == 'done'")
    long = acts[acts["t_end_s"] - acts["t_start_s"] > 0.4]
    assert len(long) > 5
    assert long["bits"].to_numpy() == pytest.approx(BITS, rel=1e-12)
    if sharing == "reserved":
        assert carried_bits(world_again(sections), long) == pytest.approx(BITS, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("sharing", "count", "bits"), [("reserved", 200, 1e6), ("reshared", 30, 3e5)])
def test_of_a_hundred_thousand_uploads_no_bit_is_lost(tmp_path, sharing, count, bits):
    """Each that ends has sent its payload, each that is cut off less; a shared band is used up while anyone sends.

    A reserved one has sent the integral of its rate, of which each 400th is worked out here.
    """
    knobs = {"admission": "count", "count": count, "allocator": "equal_share", "payload_bits": bits, "late": "keep"}
    sections = {"devices": {"count": count}, "round": knobs, "radio": {"sharing": sharing}, "mobility": FAST}
    acts = play(tmp_path / "run", BASE, sections, rounds=110_000 // count).uploads
    assert len(acts) > 100_000
    done = acts["outcome"] == "done"
    assert acts.loc[done, "bits"].to_numpy() == pytest.approx(bits, rel=1e-12)
    assert (acts["bits"] <= bits * (1 + 1e-12)).all()
    if sharing == "reshared":
        took_hz_s = (acts["bandwidth_hz"] * (acts["t_end_s"] - acts["t_start_s"])).sum()
        (run,) = runs_of([tmp_path / "run"])
        edges_s, in_use = band_use(acts, run.bandwidth_hz, reshared=True)
        busy_s = np.diff(edges_s)[in_use[:-1] > 0].sum()
        assert took_hz_s == pytest.approx(run.bandwidth_hz * busy_s, rel=1e-9)
    else:
        some = acts[::400]
        assert some["bits"].to_numpy() == pytest.approx(carried_bits(world_again(sections), some), rel=1e-7)


def test_what_is_known_of_the_paths_decides_who_is_late(tmp_path):
    missed = {}
    for knowledge in KNOWLEDGE:
        rounds = play(tmp_path / knowledge, BASE, mobility=FAST, rounds=15, round={"path_knowledge": knowledge}).rounds
        missed[knowledge] = rounds["late"].sum() / rounds["selected"].sum()
    assert missed["present"] > 0.3
    assert 0.0 < missed["straight"] < 0.5 * missed["present"]
    assert missed["known"] == missed["worst"] == 0.0


def test_a_run_can_move_along_the_ways_that_another_one_left(tmp_path):
    """All but the last round, within which the file ends, and with it the last square's part of each way."""
    radio = {"radio": {"shadowing": "per_run"}}
    play(tmp_path / "first", BASE, radio, mobility=FAST)
    again = {"model": "recorded", "file": str(tmp_path / "first/ways.parquet"), "after_end": "hold"}
    play(tmp_path / "second", BASE, radio, mobility=again)
    first, second = (read_table(tmp_path / name, "activities").query("round < 6") for name in ("first", "second"))
    np.testing.assert_allclose(first["t_end_s"], second["t_end_s"], rtol=0, atol=1e-6)


OWN = {"radio": {"sharing": "own"}, "devices": {"links": {"file": "x.csv"}}}
LEAST = {"topology": {"file": "three-cells", "attach": "least_loaded"}}
PER_RUN = {"radio": {"shadowing": "per_run", "between_stations": 0.5}}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"mobility": None, "radio": {"grid_m": 5.0}}, "radio.grid_m = 5 needs mobility"),
        ({"mobility": None, "round": {"path_knowledge": "known"}}, "round.path_knowledge = 'known' needs mobility"),
        ({"mobility": None, "radio": {"shadowing": "map"}}, "radio.shadowing = 'map' needs mobility"),
        (PER_RUN, "radio.between_stations = 0.5 does not go with radio.shadowing = 'per_run'"),
        (OWN, "mobility needs radio.sharing = 'reserved' or 'reshared', not 'own'"),
        (LEAST, "mobility needs topology.attach = 'strongest' or 'nearest', not 'least_loaded'"),
        ({"radio": {"channel": "recorded-capacity"}}, "radio.channel = 'recorded-capacity' does not go with mobility"),
        ({"radio": {"grid_m": 0.1}}, "radio.grid_m = 0.5 fits"),
        ({"mobility": {"turn_s": None, "pause_s": 3.0}}, "mobility.pause_s: is an option of model 'waypoint'"),
        ({"mobility": {"model": None}}, "mobility.model: field required"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_in_a_line(tmp_path, sections, said):
    with in_one_line(re.escape(said)):
        play(tmp_path / "run", BASE, {"mobility": FAST}, sections)
    assert not (tmp_path / "run").exists()


def for_2_s(folder):
    """The motion of 30 devices whose positions are known for 2 s."""
    return recorded(folder, [(k, t_s, 20 + 10 * t_s, 5 * k) for k in range(30) for t_s in (0, 2)], "absent")


@pytest.mark.parametrize(
    ("sections", "needed"), [({"stop_at_s": 5.0}, "5"), ({"round": {"close": "deadline"}}, "6"), ({}, "2.000000001")]
)
def test_a_recording_that_ends_before_the_run_is_refused_with_its_remedy(tmp_path, sections, needed):
    start = re.escape(f"{tmp_path / 'ways.csv'}: positions are known up to 2 s, but needed at {needed}")
    with in_one_line(f'^{start}.*mobility.after_end = "wrap" or "hold"'):
        play(tmp_path / "run", BASE, sections, mobility=for_2_s(tmp_path))


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"rounds": 3}, "positions are known up to 2 s, and 3 rounds of up to 1 s each may last longer"),
        ({"rounds": 3, "round": BUFFER}, "positions are known up to 2 s, and how long the run lasts is not known"),
        ({"rounds": 2}, None),
        ({"rounds": 3, "stop_at_s": 2.0}, None),
        ({"rounds": 3, "mobility": {"after_end": "hold"}}, None),
    ],
)
def test_a_run_that_may_outlast_a_recording_has_a_note(tmp_path, sections, said):
    with Simulation(complete(config(**merged({"mobility": for_2_s(tmp_path)}, sections)))) as ready:
        note = ready.notes.get("positions")
    assert (note is None) == (said is None)
    assert said is None or note.startswith(said)


def test_run_json_says_how_much_memory_the_maps_take(tmp_path):
    """Of 500 m squares of 50 m make 11 a side, since the edge has one of its own, and one more all around: 9 bytes
    each.
    """
    played = play(tmp_path, BASE, mobility=FAST, radio={"grid_m": 50.0}, rounds=1)
    assert played.facts["maps_bytes"] == 9 * 13 * 13


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tmax_s", "speed_mps", "expected"),
    [
        (1.0, 1.5, {"present": (10.3, 0.18), "worst": (10.1, 0.0)}),
        (1.0, 30.0, {"present": (10.3, 0.50), "known": (10.4, 0.0), "worst": (8.5, 0.0)}),
        (10.0, 1.5, {"present": (12.5, 0.52), "worst": (11.1, 0.0)}),
        (10.0, 30.0, {"present": (12.5, 0.66), "known": (11.1, 0.0), "worst": (5.0, 0.0)}),
    ],
)
def test_plans_on_the_present_gain_are_a_coin_toss_and_the_worst_gain_costs_clients(
    tmp_path, tmax_s, speed_mps, expected
):
    """Mobility page, 1.7: clients that fit, and the share of them that are late, of 30 that go straight.

    The page's numbers are means over 60 draws; these are means over 20, of other seeds.
    """
    draws, seen = 20, {name: [] for name in expected}
    for seed in range(draws):
        random = np.random.default_rng(seed)
        x_m, y_m = place_in_disc(np.arange(30), 250.0, 10.0, Streams(seed))
        angle = random.uniform(0, 2 * np.pi, 30)
        dx_m, dy_m = 2.0 * tmax_s * speed_mps * np.array([np.cos(angle), np.sin(angle)])
        rows = [(k, 0, x_m[k].item(), y_m[k].item()) for k in range(30)]
        rows += [(k, 2.0 * tmax_s, (x_m + dx_m)[k].item(), (y_m + dy_m)[k].item()) for k in range(30)]
        motion = recorded(tmp_path, rows, "absent")
        for name in expected:
            plan = {"payload_bits": BITS * tmax_s, "tmax_s": tmax_s, "path_knowledge": name, "leftover": "idle"}
            folder = tmp_path / f"{seed} {name}"
            rounds = play(folder, BASE, seed=seed, rounds=1, mobility=motion, round=plan).rounds
            seen[name].append((rounds["selected"][0], rounds["selected"][0] - rounds["arrived"][0]))
    for name, (fit, share) in expected.items():
        taken, late = np.array(seen[name], dtype=float).T
        # Errors of both means; the page rounds to a tenth and to a hundredth.
        error = taken.std(ddof=1) * np.sqrt(1 / draws + 1 / 60)
        assert abs(taken.mean() - fit) <= 3 * error + 0.05, name
        if share:
            shares = late / taken
            assert abs(late.sum() / taken.sum() - share) <= 3 * shares.std(ddof=1) * np.sqrt(1 / draws + 1 / 60) + 0.005
        else:
            assert late.sum() == 0, name


@pytest.mark.parametrize("grid_m", [5.0, 1.0])
def test_twelve_uploads_on_a_shared_band_change_it_at_their_begins_and_ends_alone(tmp_path, monkeypatch, grid_m):
    """Mobility page, 1.6: 24 events of 12 uploads at 5 to 40 m/s, beside 48 and more with one for each chord."""
    changes, share_anew = [], MovingSharedBand._share_anew

    def counted(band):
        changes.append(band.clock.now)
        share_anew(band)

    monkeypatch.setattr(MovingSharedBand, "_share_anew", counted)
    motion = {"model": "direction", "speed_mps": [5.0, 40.0], "turn_s": 1e6}
    radio = {"sharing": "reshared", "grid_m": grid_m}
    plan = {"admission": "count", "count": 12, "allocator": "equal_share", "tmax_s": 6.0}
    sections = {"devices": {"count": 12}, "mobility": motion, "radio": radio, "round": plan}
    rounds = play(tmp_path, BASE, sections, rounds=1).rounds
    assert rounds[["selected", "arrived"]].to_numpy().tolist() == [[12, 12]]
    assert len(changes) == 24
    chords, _ = world_again(sections).moving.chords.until(np.arange(12), changes[0], changes[-1])
    assert len(chords.place) >= 48
