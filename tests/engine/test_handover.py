"""Runs whose devices are handed over while they work; `test_plain_cells` plays random ones beside another simulator."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from cell_files import plain_channel, write_cells
from edited_runs import forget_digests
from stopped_runs import assert_stops_change_nothing, stop_at
from whole_runs import merged, play, slow_but, write_rows

from edgesim.analysis.band_use import use_by_station
from edgesim.analysis.check import run_faults
from edgesim.analysis.runs import runs_of
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import NoTables, read_table
from edgesim.folder.rows_file import WAYS
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation

MBIT = 1e6
TIMED = {"data": {"dataset": "none"}, "learning": {"training": "none"}}
PLACES_M = {"west": (0.0, 0.0), "east": (500.0, 0.0)}


def values(folder: Path, ways: list[tuple[float, float]], **sections: object) -> dict[str, object]:
    """A run of devices along the x axis between stations at 0 and 500 m.

    Each of ``ways`` is where a device is at 0 s and its speed; they go on for 10 s.
    """
    rows = [(k, t_s, x_m + speed_mps * t_s, 0) for k, (x_m, speed_mps) in enumerate(ways) for t_s in (0, 10)]
    count = {"admission": "count", "count": len(ways), "allocator": "equal_share"}
    base = {
        "seed": 4,
        "rounds": 1,
        # Computing takes 5 s.
        "devices": {"count": len(ways), "radius_m": 500.0, "a_s_per_sample": 5 / 160, "mu_samples_per_s": 1e15},
        "round": {"payload_bits": 40 * MBIT, "tmax_s": 9.9, **count},
        "topology": {"file": write_cells(folder, PLACES_M, [("west", "east", 1e15, 0.0)])},
        "mobility": {"model": "recorded", "after_end": "hold"}
        | {"file": write_rows(folder / "walk.csv", "device,t_s,x_m,y_m", rows)},
        "radio": {"channel": plain_channel(folder), "bandwidth_hz": 1e6},
        "handover": {},
    }
    return merged(TIMED, base, sections)


BUFFER = {"protocol": "buffered", "allocator": "least"}
WORKED = [(100.0, 30.0)]
WORKED_S, SENT = 6.089333333333, 11_041_339.560650688


@pytest.mark.parametrize(
    ("upload", "interruption_s", "end_s"),
    [("continue", 0.05, 8.497562608909), ("restart", 0.05, 9.291645168062), ("continue", 0.0, 8.455457871625)],
)
@pytest.mark.parametrize("protocol", ["rounds", "none"])
def test_the_worked_upload_across_a_handover_has_all_of_both_bands(tmp_path, upload, interruption_s, end_s, protocol):
    handover = {"upload": upload, "interruption_s": interruption_s}
    given = values(tmp_path, WORKED, radio={"sharing": "reshared"}, handover=handover)
    if protocol == "none":
        # On reserved bandwidth, of which the one place at work has the band of either cell.
        given = values(tmp_path, WORKED, round=BUFFER, handover=handover)
    played = play(tmp_path / "run", given)
    rows = played.uploads[:2]
    ends_s = [WORKED_S, end_s]
    assert rows["t_end_s"].tolist() == pytest.approx(ends_s, abs=1e-9)
    assert rows["t_start_s"].tolist() == pytest.approx([5.0, WORKED_S + interruption_s], abs=1e-9)
    left = 40 * MBIT if upload == "restart" else 40 * MBIT - SENT
    assert rows["bits"].tolist() == pytest.approx([SENT, left], rel=1e-9)
    assert rows["outcome"].tolist() == ["dropped" if upload == "restart" else "paused", "done"]
    first = played.handovers.iloc[0]
    assert (first["from_station"], first["to_station"], first["phase"], first["task"]) == (0, 1, "upload", 1)
    assert first["bits_left"] == pytest.approx(left, rel=1e-9)
    # In the square from x = 280 m on, whose middle is 282.5 m.
    losses = [128.1 + 37.6 * np.log10(away_m / 1000) for away_m in (282.5, 217.5)]
    assert first[["gain_from_db", "gain_to_db"]].tolist() == pytest.approx([-loss for loss in losses])
    # At 23 dBm, with an efficiency of 0.35: none in the silence between.
    joules = 10 ** (2.3 - 3) / 0.35 * (rows["t_end_s"] - rows["t_start_s"])
    assert rows["energy_j"].tolist() == pytest.approx(joules.tolist())


def test_on_reserved_bandwidth_the_new_cell_plans_what_is_left(tmp_path):
    """On the gain at the handover, to the deadline: 28,958,660 bits in 9.9 - 6.139 s, with the path known exactly."""
    for knowledge in ("present", "known"):
        given = values(tmp_path, WORKED, round={"path_knowledge": knowledge})
        rows = play(tmp_path / knowledge, given).uploads
        assert rows["bits"].sum() == pytest.approx(40 * MBIT)
        end_s = rows["t_end_s"].iloc[1]
        # The way comes nearer to the new station, so that the present gain is less than those to come.
        assert end_s == pytest.approx(9.9, abs=1e-6) if knowledge == "known" else end_s < 9.5


def test_the_use_of_each_band_counts_what_was_sent_before_the_handover_in_the_old_cell(tmp_path):
    """Device 0 goes from the west to the east, 1 is in the east all the time."""
    given = values(tmp_path, [*WORKED, (420.0, 0.0)], radio={"bandwidth_hz": 2e6}, round={"payload_bits": 60 * MBIT})
    rows = play(tmp_path / "run", given).uploads.sort_values(["device", "t_start_s"])
    assert rows["device"].tolist() == [0, 0, 1]
    hertz_seconds = (rows["bandwidth_hz"] * (rows["t_end_s"] - rows["t_start_s"])).to_numpy()
    shares = [use.mean(0.0, 20.0) * 20.0 * 2e6 for _, use in use_by_station(*runs_of([tmp_path / "run"]))]
    assert shares == pytest.approx([hertz_seconds[0], hertz_seconds[1:].sum()])


def test_with_nearest_devices_are_handed_over_where_both_stations_are_as_far(tmp_path):
    """Up to a square's diagonal, whatever the shadowing of 8 dB on the way."""
    given = values(tmp_path, [(0.0, 0.0)], topology={"file": "three-cells", "attach": "nearest"})
    given["devices"] |= {"count": 12, "radius_m": 250.0}
    given["mobility"] = {"model": "direction", "speed_mps": [30.0, 60.0]}
    given["round"] |= {"count": 12}
    given["radio"] = {"bandwidth_hz": 1e6}
    given["handover"] = {"hysteresis_db": 0.0, "trigger_s": 0.0}
    played = play(tmp_path / "run", given)
    told, ways = played.handovers, WAYS.read(played.folder).groupby("device")
    places_m = played.stations[["x_m", "y_m"]].to_numpy()
    assert len(told) > 5
    for row in told.itertuples():
        way = ways.get_group(row.device)
        at_m = [np.interp(row.t_s, way["t_s"], way[axis]) for axis in ("x_m", "y_m")]
        left_m, joined_m = np.hypot(*(places_m[[row.from_station, row.to_station]] - at_m).T)
        assert abs(left_m - joined_m) < 5 * np.sqrt(2)


def test_metrics_count_handovers_and_those_back_within_a_second(tmp_path):
    given = values(tmp_path, WORKED, handover={"trigger_s": 0.1, "hysteresis_db": 0.0, "offset_db": -30.0})
    played = play(tmp_path / "run", given)
    metrics, told = played.metrics.set_index("name")["value"], played.handovers
    assert metrics["handovers"] == len(told) > 10
    assert metrics["ping_pongs"] == len(told) - 1
    assert metrics["interrupted_s"] == pytest.approx(0.05 * told["bits_left"].notna().sum())


def test_metrics_count_the_candidates_of_each_station(tmp_path):
    """By reports the device from x = 200 m has been handed over when the band is shared, at the start it has not."""
    ways = [(200.0, 30.0), (20.0, 0.0), (450.0, 0.0)]
    for knowledge, expected in (("known", [2, 1]), ("reported", [1, 2])):
        knobs = {"delay_knowledge": knowledge, "computes": "candidates"}
        knobs |= {"report_by_s": 7.0} if knowledge == "reported" else {}
        counts = play(tmp_path / knowledge, values(tmp_path, ways, round=knobs)).metric("station_candidates", "key")
        assert counts.to_dict() == {"0": expected[0], "1": expected[1]}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"handover": {"trigger_s": 0.0, "offset_db": -4.0}}, "trigger_s: expected more than 0"),
        ({"handover": {"merge": "where_started"}}, "handover.merge.*topology.aggregation"),
        ({"handover": {"hysteresis_db": -1.0}}, "hysteresis_db"),
        ({"mobility": None}, r"handover.*mobility"),
    ],
)
def test_bad_keys_are_refused(tmp_path, sections, said):
    with pytest.raises(EdgesimError, match=said):
        parse(values(tmp_path, WORKED, **sections), "bad")


def at_edges(folder: Path, merge: str, **knobs: object) -> dict[str, object]:
    """Edge servers beside both stations; device 0 goes from the west to the east, 1 stays in the east."""
    given = values(folder, [*WORKED, (400.0, 0.0)], handover={"merge": merge}, radio={"sharing": "reshared"})
    links, servers = [("west", "cloud", 1e9, 0.0), ("cloud", "east", 1e9, 0.0)], ["west", "east"]
    file = write_cells(folder, PLACES_M, links, cloud="cloud", edge_servers=servers)
    topology = {"file": file, "aggregation": "hierarchical", "cloud_every": 100}
    return merged(given, {"topology": topology}, knobs)


@pytest.mark.parametrize(("merge", "links", "wires_s"), [("where_arrived", 1, 0.0), ("where_started", 2, 0.08)])
def test_edge_servers_merge_where_an_upload_arrives_or_where_it_started(tmp_path, merge, links, wires_s):
    """Over two links of 0.04 s each to the first server; the model of the merge then takes one to the cloud."""
    played = play(tmp_path / "run", at_edges(tmp_path, merge))
    rows = played.uploads.query("device == 0 and outcome == 'done'")
    # The average at the end of the run takes a link, too.
    assert played.rounds["t_end_s"].tolist() == pytest.approx([rows["t_end_s"].max() + wires_s + 0.04])
    assert played.metric("backhaul_bits").tolist() == [links * 40 * MBIT, links * 40 * MBIT]


def test_plans_by_reports_leave_time_for_the_wires_to_where_a_task_started(tmp_path):
    """Device 0 has changed to the east when it reports; its update has to cross both links until the deadline."""
    knobs = {
        "tmax_s": 9.9, "computes": "candidates", "delay_knowledge": "reported", "report_by_s": 7.5, "admission": "band",
        "count": None, "allocator": "least", "payload_bits": 1 * MBIT, "path_knowledge": "known",
    }  # fmt: skip
    given = at_edges(tmp_path, "where_started", round=knobs, devices={"a_s_per_sample": 7 / 160})
    given["radio"] |= {"sharing": "reserved"}
    played = play(tmp_path / "run", given)
    assert played.handovers[["device", "phase"]].to_numpy().tolist() == [[0, "compute"]]
    assert played.rounds[["selected", "arrived"]].to_numpy().tolist() == [[2, 2]]


@pytest.mark.slow
def test_the_server_that_merges_an_update_sends_its_model_in_the_next_round(tmp_path):
    """Where device 0 arrives in the east the west's model stays as it was, and nobody trains from another one."""
    norms = {}
    for merge in ("where_arrived", "where_started"):
        given = at_edges(tmp_path, merge, data={"dataset": "digits"}, learning={"training": "real", "pretrain": False})
        given["rounds"] = 2
        given["mobility"] |= {"after_end": "wrap"}
        norms[merge] = play(tmp_path / merge, given).updates.set_index(["round", "device"])["update_norm"]
    first, other = norms.values()
    assert first[1].equals(other[1])
    # Device 0 wraps to the west for round 2, where `where_started` has its own first update.
    assert first[2, 0] != other[2, 0]
    assert first[2, 1] != other[2, 1]


FAST: dict[str, object] = TIMED | {
    "seed": 3,
    "rounds": 10,
    "topology": {"file": "three-cells"},
    "mobility": {"model": "direction", "speed_mps": [60.0, 120.0], "turn_s": 3.0},
    "handover": {"hysteresis_db": 0.5, "trigger_s": 0.02, "interruption_s": 0.1},
}
LATE = {"late": "keep", "admission": "count", "allocator": "equal_share"}


def test_a_stopped_run_has_the_handovers_of_its_rounds_and_remembers_those_of_the_last_second(tmp_path):
    sections = {"rounds": 8, "devices": {"count": 24}, "round": {"payload_bits": 2e6, "tmax_s": 0.7}}
    whole, config = play(tmp_path / "whole", FAST, sections), parse(merged(FAST, sections), "stopped")
    assert stop_at(config, tmp_path / "stopped", 6) is None
    of_rounds = whole.handovers[whole.handovers["round"] <= 6].reset_index(drop=True)
    pd.testing.assert_frame_equal(read_table(tmp_path / "stopped", "handovers"), of_rounds)
    with Simulation(complete(config)) as under_way:
        cells = under_way.make_server(NoTables()).parts.cells
        under_way.begin()
        for _ in range(6):
            under_way.advance()
        # A checkpoint holds these.
        remembered_s, since_s = [row[1] for row in cells.rows], of_rounds["t_s"].max() - 1.0
        assert remembered_s == [t_s for t_s in of_rounds["t_s"] if t_s >= since_s]
        assert 0 < len(remembered_s) < len(of_rounds)


def test_a_handover_to_the_same_station_is_refused_and_folders_of_before_have_no_handovers(tmp_path):
    sections = {"rounds": 2, "devices": {"count": 12}, "round": {"payload_bits": 2e6, "tmax_s": 0.7}}
    folder = forget_digests(play(tmp_path / "run", FAST, sections).folder)
    path = folder / "handovers.parquet"
    rows = pq.read_table(path)
    pq.write_table(rows.set_column(5, "to_station", rows["from_station"]), path)
    with pytest.raises(EdgesimError, match=r"handovers\.parquet: column 'to_station': row 1: expected another station"):
        read_table(folder, "handovers")
    path.unlink()
    assert read_table(folder, "handovers").empty


@pytest.mark.slow
@pytest.mark.parametrize("upload", ["continue", "restart"])
def test_runs_killed_in_interruptions_and_in_queues_have_the_bytes_of_undisturbed_ones(tmp_path, upload):
    """Checkpoints lie in the interruptions of handovers and in waits for bandwidth of others."""
    sections = {
        "rounds": 8,
        "devices": {"count": 24},
        "radio": {"bandwidth_hz": 2e6},
        "round": LATE | {"payload_bits": 4e6, "tmax_s": 0.7, "count": 24},
        "handover": {"upload": upload},
    }
    given = merged(FAST, sections)
    config, stops, saved = parse(given, "kill"), (2, 4, 6, 7), set()
    with Simulation(complete(config)) as under_way:
        cells = under_way.make_server(NoTables()).parts.cells
        under_way.begin()
        for number in range(1, max(stops)):
            under_way.advance()
            # The run goes on from the round before that in which it is killed.
            saved |= {work.task.phase for work in cells.works.values()} if number + 1 in stops else set()
    assert {"silence", "queue"} <= saved
    assert_stops_change_nothing(config, tmp_path, stops)


SHARINGS = {
    "reserved": ({}, LATE | {"tmax_s": 0.6, "count": 8}),
    "reshared": ({"sharing": "reshared"}, {"tmax_s": 1.0}),
    "without rounds": ({}, {"protocol": "buffered", "admission": "count", "count": 8}),
}


@pytest.mark.parametrize(
    ("sharing", "upload"),
    slow_but([("reserved", "continue")], itertools.product(SHARINGS, ("continue", "restart", "lost"))),
)
def test_updates_that_are_handed_over_arrive_whole_and_cells_carry_no_more_than_their_bands(tmp_path, sharing, upload):
    radio, knobs = SHARINGS[sharing]
    sections = {
        "devices": {"count": 30},
        "radio": {"bandwidth_hz": 4e6, **radio},
        "round": {"payload_bits": 2e6, **knobs},
        "handover": {"upload": upload, "interruption_s": 0.03},
    }
    played = play(tmp_path / "run", FAST, sections)
    told = played.handovers
    assert len(told) > 15
    assert told["phase"].isin(["upload", "silence"]).sum() > 3
    # Cells carry no more than their bands.
    assert run_faults(played.folder) == []
    uploads = played.uploads[played.uploads["bits"] > 0]
    # An update that arrived has all of its bits: from all cells together, or since the last restart.
    for (device, _), own in uploads.groupby(["device", "task"]):
        restarted = upload == "restart" and "dropped" in own["outcome"].to_list()
        whole = own["bits"].iloc[-1] if restarted else own["bits"].sum()
        assert own["outcome"].iloc[-1] != "done" or whole == pytest.approx(2e6, rel=1e-9), device
