"""Runs of devices that move: at speed 0 they are those of today, and uploads carry what their ways let through."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from edgesim.analysis.band_use import band_use
from edgesim.analysis.runs import runs_of
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.devices.places import place_in_disc
from edgesim.engine.estimates import PlannedEstimates
from edgesim.engine.make_world import make_world
from edgesim.engine.moving_shared_band import MovingSharedBand
from edgesim.engine.path_link import PathLink
from edgesim.folder.records import NoTables, read_run, read_table
from edgesim.folder.run_schema import SCHEMAS
from edgesim.radio.environment import load_environment
from edgesim.simulation import composition as simulation
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation
from edgesim.streams import Streams

BITS = 17_881_664.0
STILL = {"model": "direction", "speed_mps": [0.0, 0.0]}
FAST = {"model": "direction", "speed_mps": [20.0, 40.0], "turn_s": 5.0}


def values(**sections):
    base = {
        "seed": 4,
        "rounds": 6,
        "devices": {"count": 30},
        "round": {"payload_bits": BITS},
        "data": {"dataset": "none"},
        "learning": {"training": "none"},
    }
    given = {key: {**base.get(key, {}), **own} for key, own in sections.items() if isinstance(own, dict)}
    return base | sections | given


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
    "two branches": {"radio": {"channel": "uma"}, "round": {"outage": 0.05}, "devices": {"radius_m": 400.0}},
}


@pytest.mark.parametrize("knowledge", ["present", "straight", "known", "worst"])
@pytest.mark.parametrize("world", WORLDS)
def test_devices_of_speed_0_stand_still_to_the_last_bit(tmp_path, world, knowledge):
    sections = {key: dict(own) for key, own in WORLDS[world].items()}
    sections["radio"] = {"shadowing": "per_run", **sections.get("radio", {})}
    if world == "two branches":
        sections["radio"]["fading"] = "rayleigh"
    simulation.run(parse(values(**sections), "still"), tmp_path / "still")
    sections["round"] = {**sections.get("round", {}), "path_knowledge": knowledge}
    simulation.run(parse(values(**sections, mobility=STILL), "moving"), tmp_path / "moving")
    still, moving = tables(tmp_path / "still"), tables(tmp_path / "moving")
    # Which station a task had is told of devices that move alone.
    rows = [read_table(tmp_path / name, "metrics").query("name != 'task_station'") for name in ("still", "moving")]
    pd.testing.assert_frame_equal(*(table.reset_index(drop=True) for table in rows))
    assert still | {"metrics": b""} == moving | {"metrics": b""}


def test_recorded_positions_that_never_change_are_devices_that_stand_still(tmp_path):
    x_m, y_m = place_in_disc(np.arange(30), 250.0, 10.0, Streams(4))
    places = list(zip(range(30), x_m.tolist(), y_m.tolist(), strict=True))
    rows = [f"{k},{t_s},{x!r},{y!r}" for k, x, y in places for t_s in (0.0, 1.5, 40.0)]
    (tmp_path / "still.csv").write_text("\n".join(["device,t_s,x_m,y_m", *rows]))
    radio = {"radio": {"shadowing": "per_run"}}
    simulation.run(parse(values(**radio), "still"), tmp_path / "still")
    recorded = {"model": "recorded", "file": str(tmp_path / "still.csv")}
    simulation.run(parse(values(**radio, mobility=recorded), "moving"), tmp_path / "moving")
    assert tables(tmp_path / "still") == tables(tmp_path / "moving")


def worked_world(tmp_path, **sections):
    """The world of a device on the worked leg, from (-100, 30) to (150, 90) at 15 m/s, without shadowing."""
    length_s = float(np.hypot(250.0, 60.0) / 15.0)
    (tmp_path / "leg.csv").write_text(f"device,t_s,x_m,y_m\n0,0,-100,30\n0,{length_s!r},150,90\n")
    motion = {"model": "recorded", "file": str(tmp_path / "leg.csv"), "after_end": "hold"}
    return world_of(tmp_path, motion, devices={"count": 1}, **sections)


def world_of(tmp_path, motion, **sections):
    """The world of devices that move in FedTeddi's environment without shadowing."""
    channel = tmp_path / "plain.toml"
    text = Path("channels/fedteddi-macro.toml").read_text()
    channel.write_text(
        "\n".join(line for line in text.splitlines() if not line.startswith("shadowing_std_db")).replace(
            "shadowing = ", "shadowing_std_db = 0.0\nshadowing = ", 1
        )
    )
    sections["radio"] = {"channel": str(channel), **sections.get("radio", {})}
    return make_world(complete(parse(values(mobility=motion, **sections), "worked")), Streams(4))


@pytest.mark.parametrize("shadowing", ["map", "per_run"])
@pytest.mark.parametrize(
    ("ready_s", "due_s", "needs_hz"),
    [
        (10.0, 14.0, {"known": 259_692.680082369, "worst": 281_368.700555479, "straight": 259_692.680082369}),
        (8.0, 9.0, {"known": 1_003_040.458433171, "worst": 1_030_525.231111047, "straight": 1_003_040.458433171}),
    ],
)
def test_the_worked_plans_need_as_much_as_is_known_of_the_path(tmp_path, shadowing, ready_s, due_s, needs_hz):
    world, ids = worked_world(tmp_path, radio={"shadowing": shadowing}), np.array([0])
    moving = world.moving
    for knowledge, need_hz in needs_hz.items():
        link = PathLink(moving, 0, knowledge, ready_s, lambda some: np.ones(len(some), dtype=int), world.rx_power_w)
        power_w = world.rx_power_w(ids, world.gain(ids, 1, ready_s, np.array([0])))
        asked = ids, np.array([BITS]), np.array([ready_s - 7.5]), due_s - 7.5, power_w, 7.5
        assert link.least_hz(*asked) == pytest.approx(need_hz, rel=1e-9)
    assert world.gain(ids, 1, ready_s, np.array([0])) == world.moving.gain(ids, 1, ready_s, np.array([0]))


def test_a_task_keeps_its_station_and_the_next_one_has_that_of_its_instant(tmp_path):
    """Two stations; the device walks past the middle between them, from 0 to 200 m at 20 m/s."""
    layout = tmp_path / "two.toml"
    layout.write_text(
        'name = "two"\nsource = "test"\ncloud = "west"\n'
        '[[stations]]\nname = "west"\nx_m = -50.0\ny_m = 0.0\n[[stations]]\nname = "east"\nx_m = 150.0\ny_m = 0.0\n'
        '[[links]]\nbetween = ["west", "east"]\nrate_bps = 1e9\n'
    )
    (tmp_path / "walk.csv").write_text("device,t_s,x_m,y_m\n0,0,0,0\n0,10,200,0\n")
    motion = {"model": "recorded", "file": str(tmp_path / "walk.csv"), "after_end": "hold"}
    sections = {
        "topology": {"file": str(layout), "attach": "nearest"},
        "devices": {"count": 1},
        "round": {"close": "deadline", "payload_bits": 1e6},
        "radio": {"shadowing": "per_run"},
    }
    simulation.run(parse(values(**sections, rounds=6, mobility=motion), "walk"), tmp_path / "run")
    told = read_table(tmp_path / "run", "metrics").query("name == 'task_station'").set_index("key")["value"]
    # The middle, x = 50 m, is passed at 2.5 s: rounds that begin at 0, 1 and 2 s are the west's.
    assert told.to_dict() == {f"0/{round}": float(round > 3) for round in range(1, 7)}
    wires = read_table(tmp_path / "run", "metrics").query("name == 'backhaul_bits'")
    assert wires["round"].tolist() == [4, 5, 6]


TWO_CELLS = (
    'name = "two"\nsource = "test"\ncloud = "west"\n'
    '[[stations]]\nname = "west"\nx_m = 0.0\ny_m = 0.0\n[[stations]]\nname = "east"\nx_m = 500.0\ny_m = 0.0\n'
    '[[links]]\nbetween = ["west", "east"]\nrate_bps = 1e9\n'
)


@pytest.mark.parametrize("shadowing", ["map", "per_run"])
@pytest.mark.parametrize("attach", ["strongest", "nearest"])
@pytest.mark.parametrize("knowledge", ["present", "straight", "known", "worst"])
def test_devices_leave_their_cells_at_the_worked_instant_as_far_as_their_paths_are_known(
    tmp_path, shadowing, attach, knowledge
):
    """From x = 100 to 400 m at 30 m/s between stations at 0 and 500 m; a second device turns around at 200 m."""
    (tmp_path / "two.toml").write_text(TWO_CELLS)
    (tmp_path / "walk.csv").write_text("device,t_s,x_m,y_m\n0,0,100,0\n0,10,400,0\n1,0,100,0\n1,3,190,0\n1,6,100,0\n")
    world = world_of(
        tmp_path,
        {"model": "recorded", "file": str(tmp_path / "walk.csv"), "after_end": "hold"},
        topology={"file": str(tmp_path / "two.toml"), "attach": attach},
        radio={"shadowing": shadowing},
        round={"path_knowledge": knowledge},
        devices={"count": 2, "radius_m": 500.0},
    )
    ids, t_start_s = np.arange(2), 1.0
    timeline = SimpleNamespace(world=world, ids=ids, station=world.places.stations(ids, t_start_s), t_start_s=t_start_s)
    estimates = PlannedEstimates(timeline, world.bands_hz, None)
    leaves_s = 6.089333333333 - t_start_s
    expected = {"present": [np.inf] * 2, "straight": [leaves_s] * 2}.get(knowledge, [leaves_s, np.inf])
    assert estimates.leaves_cell_s(np.array([0, 1]), 8.0).tolist() == pytest.approx(expected, abs=1e-9)
    assert estimates.leaves_cell_s(np.array([1, 0]), 8.0).tolist() == pytest.approx(expected[::-1], abs=1e-9)
    # Beyond the horizon nobody looks.
    assert estimates.leaves_cell_s(np.array([0]), 5.0).tolist() == [np.inf]


def test_the_cell_of_devices_that_stand_still_or_have_one_station_is_never_left(tmp_path):
    for sections in ({"topology": {"file": "three-cells"}}, {"mobility": FAST, "round": {"path_knowledge": "known"}}):
        world = make_world(complete(parse(values(**sections), "still")), Streams(4))
        ids = np.arange(30)
        timeline = SimpleNamespace(world=world, ids=ids, station=world.places.stations(ids, 0.0), t_start_s=0.0)
        leaves_s = PlannedEstimates(timeline, world.bands_hz, None).leaves_cell_s(ids, 100.0)
        assert leaves_s.tolist() == [np.inf] * 30


def test_stays_longest_takes_those_that_stay_while_others_pass(tmp_path):
    """Ten devices at rest beside ten that cross a border within the deadlines ahead: five of the former are taken."""
    (tmp_path / "two.toml").write_text(TWO_CELLS)
    rows = [f"{k},0,{100 + k},0" for k in range(10)]
    rows += [f"{k},{t_s},{(240 if t_s else 160) + k + 200 * (t_s > 6)},0" for k in range(10, 20) for t_s in (0, 6, 12)]
    (tmp_path / "walk.csv").write_text("\n".join(["device,t_s,x_m,y_m", *rows]))
    run = values(
        mobility={"model": "recorded", "file": str(tmp_path / "walk.csv"), "after_end": "hold"},
        topology={"file": str(tmp_path / "two.toml"), "attach": "nearest"},
        radio={"shadowing": "per_run"},
        devices={"count": 20, "radius_m": 500.0},
        selection={"policy": "stays-longest"},
        round={"path_knowledge": "known", "admission": "count", "count": 5, "payload_bits": 1e5},
        rounds=3,
    )
    simulation.run(parse(run, "stays"), tmp_path / "run")
    taken = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
    assert len(taken) == 15
    assert taken["device"].max() < 10


def carried_bits(world, uploads: pd.DataFrame, station: int = 0) -> np.ndarray:
    """Integral of the rate of each upload over its way, chord by chord, from positions asked at crossings alone."""
    link, side_m = world.moving.link, world.moving.chords.side_m
    total = np.zeros(len(uploads))
    for row, upload in enumerate(uploads.itertuples()):
        ids = np.array([upload.device])
        _, legs = world.moving.paths.legs_until(ids, upload.t_start_s, upload.t_end_s)
        cuts = [upload.t_start_s, upload.t_end_s]
        whole = []
        for t0, t1, x0, y0, vx, vy in zip(*legs.columns, strict=True):
            edges = {t0, t1}
            for start, speed in ((x0, vx), (y0, vy)):
                if speed != 0.0:
                    lines = np.arange(
                        np.floor(min(start, start + speed * (t1 - t0)) / side_m),
                        np.ceil(max(start, start + speed * (t1 - t0)) / side_m) + 1,
                    )
                    edges |= {float(t) for t in t0 + (lines * side_m - start) / speed if t0 < t < t1}
            whole.append((sorted(edges), (t0, x0, y0, vx, vy)))
        for edges, (t0, x0, y0, vx, vy) in whole:
            for begin, end in pairwise(edges):
                within_s = min(end, cuts[1]) - max(begin, cuts[0])
                if within_s > 0:
                    middle = 0.5 * (begin + end) - t0
                    place = np.array([x0 + vx * middle]), np.array([y0 + vy * middle])
                    gain = world.moving.gains.mean_power_gain(ids, 1, np.array([station]), *place)
                    power_w = world.rx_power_w(ids, gain).item()
                    snr = power_w / (upload.bandwidth_hz * link.noise_w_per_hz)
                    total[row] += within_s * upload.bandwidth_hz * np.log2(1.0 + snr)
    return total


@pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_reserved_uploads_carry_the_integral_of_the_rate_over_their_ways(tmp_path, rounds):
    """Also those that were cut at the deadline; the integral is worked out here, chord by chord."""
    config = parse(values(mobility=FAST, rounds=rounds, radio={"grid_m": 7.0}), "moving")
    simulation.run(config, tmp_path / "run")
    with Simulation(complete(config)) as again:
        acts = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
        assert {"done", "late"} <= set(acts["outcome"])
        assert acts["bits"].to_numpy() == pytest.approx(carried_bits(again.world, acts), rel=1e-7)
    done = acts[acts["outcome"] == "done"]
    assert done["bits"].to_numpy() == pytest.approx(BITS, rel=1e-12)


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_uploads_that_go_on_past_the_deadline_end_on_the_way_behind_it(tmp_path, sharing):
    """Deadlines of 0.3 s, in which a third of the payload gets through: the way is looked at again and again."""
    knobs = {"late": "keep", "tmax_s": 0.3, "admission": "count", "count": 10, "allocator": "equal_share"}
    config = parse(values(mobility=FAST, rounds=12, round=knobs, radio={"sharing": sharing}), "late")
    simulation.run(config, tmp_path / "run")
    acts = read_table(tmp_path / "run", "activities").query("activity == 'upload' and outcome == 'done'")
    long = acts[acts["t_end_s"] - acts["t_start_s"] > 0.4]
    assert len(long) > 5
    assert long["bits"].to_numpy() == pytest.approx(BITS, rel=1e-12)
    if sharing == "reserved":
        with Simulation(complete(config)) as again:
            assert carried_bits(again.world, long) == pytest.approx(BITS, rel=1e-7)


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_of_a_stream_as_much_is_received_as_its_way_has_carried(tmp_path, sharing):
    """Entries of 52 bits behind 32 more: as many as the integral of the rate until the deadline holds."""
    knobs = {"close": "deadline", "tmax_s": 0.5, "admission": "count", "count": 10, "allocator": "equal_share"}
    upload = {"codec": "topk", "coding": "index", "ratio": 0.9, "size": "stream"}
    config = parse(values(mobility=FAST, round=knobs, radio={"sharing": sharing}, upload=upload), "stream")
    simulation.run(config, tmp_path / "run")
    acts = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
    share = read_table(tmp_path / "run", "metrics").query("name == 'received_share'").set_index("key")["value"]
    whole = np.ceil(0.9 * BITS / 32)
    assert 50 < len(acts) <= len(share) == 60
    received = share[acts["device"].astype(str) + "/" + acts["task"].astype(str)].to_numpy() * whole
    assert received == pytest.approx(np.floor((acts["bits"] - 32) / 52), abs=0.51)
    assert (received < whole).sum() > 30
    if sharing == "reserved":
        with Simulation(complete(config)) as again:
            assert acts["bits"].to_numpy() == pytest.approx(carried_bits(again.world, acts), rel=1e-7)
    else:
        took_hz_s = (acts["bandwidth_hz"] * (acts["t_end_s"] - acts["t_start_s"])).groupby(acts["round"]).sum()
        busy_s = acts.groupby("round")["t_end_s"].max() - acts.groupby("round")["t_start_s"].min()
        assert took_hz_s.to_numpy() == pytest.approx(20e6 * busy_s.to_numpy())


@pytest.mark.slow
@pytest.mark.parametrize(("sharing", "count", "bits"), [("reserved", 200, 1e6), ("reshared", 30, 3e5)])
def test_of_a_hundred_thousand_uploads_no_bit_is_lost(tmp_path, sharing, count, bits):
    """Each that ends has sent its payload, each that is cut off less; a shared band is used up while anyone sends."""
    knobs = {"admission": "count", "count": count, "allocator": "equal_share", "payload_bits": bits, "late": "keep"}
    sections = {"devices": {"count": count}, "round": knobs, "radio": {"sharing": sharing}}
    rounds = 110_000 // count
    simulation.run(parse(values(mobility=FAST, rounds=rounds, **sections), "many"), tmp_path / "run")
    acts = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
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


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_no_event_is_put_on_the_clock_where_a_gain_changes(sharing):
    """Squares a twentieth as wide are crossed twenty times as often."""
    crossings, events = [], []
    for grid_m in (20.0, 1.0):
        radio = {"sharing": sharing, "grid_m": grid_m, "shadowing": "per_run"}
        config = complete(parse(values(mobility=FAST, radio=radio, round={"close": "deadline"}), "events"))
        with Simulation(config) as run:
            run.make_server(NoTables())
            run.begin()
            for _ in range(config.rounds):
                run.advance()
            events.append(next(run.server.parts.clock._eid))
            crossings.append(len(run.world.moving.chords.until(np.arange(30), 0.0, 6.0)[0].place))
    assert crossings[1] > 10 * crossings[0]
    assert crossings[1] > 5 * max(events)
    assert events[1] == pytest.approx(events[0], rel=0.02)


def test_what_is_known_of_the_paths_decides_who_is_late(tmp_path):
    missed = {}
    for knowledge in ("present", "straight", "known", "worst"):
        folder = tmp_path / knowledge
        simulation.run(parse(values(mobility=FAST, rounds=15, round={"path_knowledge": knowledge}), "moving"), folder)
        rounds = read_table(folder, "rounds")
        missed[knowledge] = rounds["late"].sum() / rounds["selected"].sum()
    assert missed["present"] > 0.3
    assert 0.0 < missed["straight"] < 0.5 * missed["present"]
    assert missed["known"] == missed["worst"] == 0.0


def test_policies_of_one_seed_see_the_same_ways(tmp_path):
    for policy in ("random", "best-channel"):
        config = values(mobility=FAST, selection={"policy": policy}, round={"close": "deadline"})
        simulation.run(parse(config, "one"), tmp_path / policy)
    ways = [pd.read_parquet(tmp_path / policy / "ways.parquet") for policy in ("random", "best-channel")]
    pd.testing.assert_frame_equal(*ways)


def test_a_run_can_move_along_the_ways_that_another_one_left(tmp_path):
    """All but the last round, within which the file ends, and with it the last square's part of each way."""
    simulation.run(parse(values(mobility=FAST, radio={"shadowing": "per_run"}), "first"), tmp_path / "first")
    recorded = {"model": "recorded", "file": str(tmp_path / "first/ways.parquet"), "after_end": "hold"}
    simulation.run(parse(values(mobility=recorded, radio={"shadowing": "per_run"}), "second"), tmp_path / "second")
    first, second = (read_table(tmp_path / name, "activities").query("round < 6") for name in ("first", "second"))
    np.testing.assert_allclose(first["t_end_s"], second["t_end_s"], rtol=0, atol=1e-6)


RECORDED = {"radio.channel = 'recorded-capacity' does not go with mobility: the recorded capacity contains it"}


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"radio": {"grid_m": 5.0}}, "radio.grid_m = 5 needs mobility"),
        ({"round": {"path_knowledge": "known"}}, "round.path_knowledge = 'known' needs mobility"),
        ({"radio": {"shadowing": "map"}}, "radio.shadowing = 'map' needs mobility"),
        (
            {"mobility": FAST, "radio": {"shadowing": "per_run", "between_stations": 0.5}},
            "radio.between_stations = 0.5 does not go with radio.shadowing = 'per_run'",
        ),
        (
            {"mobility": FAST, "radio": {"sharing": "own"}, "devices": {"links": {"file": "x.csv"}}},
            "mobility needs radio.sharing = 'reserved' or 'reshared', not 'own'",
        ),
        (
            {"mobility": FAST, "topology": {"file": "three-cells", "attach": "least_loaded"}},
            "mobility needs topology.attach = 'strongest' or 'nearest', not 'least_loaded'",
        ),
        ({"mobility": FAST, "radio": {"channel": "recorded-capacity"}}, *RECORDED),
        ({"mobility": FAST, "radio": {"grid_m": 0.1}}, "radio.grid_m = 0.5 fits"),
        ({"mobility": {"model": "direction", "pause_s": 3.0}}, "mobility.pause_s: is an option of model 'waypoint'"),
        ({"mobility": {"model": "waypoints"}}, "mobility.model: unknown model 'waypoints', did you mean 'waypoint'?"),
        ({"mobility": {"speed_mps": [1.0, 2.0]}}, "mobility.model: field required"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(tmp_path, sections, said):
    with pytest.raises(EdgesimError) as refused:
        simulation.run(parse(values(**sections), "test"), tmp_path / "run")
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("topology", [{}, {"topology": {"file": "three-cells"}}])
def test_gains_on_a_map_are_those_of_the_squares_to_the_station_asked_for(topology):
    moving = make_world(complete(parse(values(mobility=FAST, **topology), "maps")), Streams(4)).moving
    ids = np.arange(30)
    station = ids % len(moving.stations_m)
    chords, _ = moving.chords.until(ids, 1.0, 3.0)
    along = moving.gains_along(ids, 1, station, 1.0, 3.0)
    expected = moving.maps.mean_power_gain(station[chords.place], chords.x_m, chords.y_m)
    np.testing.assert_array_equal(along.gain, expected)
    first = np.flatnonzero(np.append(True, np.diff(chords.place) > 0))
    np.testing.assert_array_equal(moving.gain(ids, 1, 1.0, station), expected[first])


def recording(folder: Path) -> dict[str, str]:
    """The motion of 30 devices whose positions are known for 2 s."""
    rows = [f"{k},{t_s},{20 + 10 * t_s},{5 * k}" for k in range(30) for t_s in (0, 2)]
    (folder / "short.csv").write_text("\n".join(["device,t_s,x_m,y_m", *rows]))
    return {"model": "recorded", "file": str(folder / "short.csv")}


@pytest.mark.parametrize(
    ("sections", "needed"),
    [({"stop_at_s": 5.0}, "5"), ({"round": {"close": "deadline"}}, "6"), ({}, "2.000000001")],
)
def test_a_recording_that_ends_before_the_run_is_refused_with_its_remedy(tmp_path, sections, needed):
    motion = recording(tmp_path)
    with pytest.raises(EdgesimError) as refused:
        simulation.run(parse(values(mobility=motion, **sections), "test"), tmp_path / "run")
    start = f"{tmp_path / 'short.csv'}: positions are known up to 2 s, but needed at {needed}"
    assert str(refused.value).startswith(start)
    assert 'mobility.after_end = "wrap" or "hold"' in str(refused.value)


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
    motion = recording(tmp_path) | sections.get("mobility", {})
    with Simulation(complete(parse(values(**{**sections, "mobility": motion}), "test"))) as ready:
        note = ready.notes.get("positions")
    assert (note is None) == (said is None)
    assert said is None or note.startswith(said)


def test_a_channel_without_shadowing_needs_no_distance_over_which_it_changes():
    config = complete(parse(values(mobility=FAST, radio={"channel": "free-space"}), "plain"))
    world = make_world(config, Streams(4))
    assert load_environment("free-space").shadowing_std_db == 0.0
    assert not world.moving.maps.shadowing_db.any()


def test_run_json_says_how_much_memory_the_maps_take(tmp_path):
    """Of 500 m squares of 50 m make 11 a side, since the edge has one of its own, and one more all around: 9 bytes
    each.
    """
    simulation.run(parse(values(mobility=FAST, radio={"grid_m": 50.0}, rounds=1), "maps"), tmp_path / "run")
    assert read_run(tmp_path / "run")["maps_bytes"] == 9 * 13 * 13


class LastRound:
    """Keeps the numbers of devices that were taken and that arrived in the last round of a run."""

    taken = arrived = 0

    def write(self, table, columns):
        if table == "rounds":
            self.taken, self.arrived = int(columns["selected"][0]), int(columns["arrived"][0])


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
        ends = zip((x_m + dx_m).tolist(), (y_m + dy_m).tolist(), strict=True)
        rows = [f"{k},0,{x!r},{y!r}" for k, (x, y) in enumerate(zip(x_m.tolist(), y_m.tolist(), strict=True))]
        rows += [f"{k},{2.0 * tmax_s},{x!r},{y!r}" for k, (x, y) in enumerate(ends)]
        (tmp_path / "straight.csv").write_text("\n".join(["device,t_s,x_m,y_m", *rows]))
        motion = {"model": "recorded", "file": str(tmp_path / "straight.csv")}
        for name in expected:
            plan = {"payload_bits": BITS * tmax_s, "tmax_s": tmax_s, "path_knowledge": name, "leftover": "idle"}
            config = complete(parse(values(seed=seed, rounds=1, mobility=motion, round=plan), "straight"))
            counts = LastRound()
            with Simulation(config) as run:
                run.make_server(counts)
                run.begin()
                run.advance()
            seen[name].append((counts.taken, counts.taken - counts.arrived))
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
def test_twelve_uploads_on_a_shared_band_change_it_at_their_begins_and_ends_alone(monkeypatch, grid_m):
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
    config = complete(parse(values(rounds=1, **sections), "shared"))
    counts = LastRound()
    with Simulation(config) as run:
        run.make_server(counts)
        run.begin()
        run.advance()
        chords, _ = run.world.moving.chords.until(np.arange(12), changes[0], changes[-1])
    assert counts.arrived == 12
    assert len(changes) == 24
    assert len(chords.place) >= 48
