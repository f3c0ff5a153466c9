"""Several stations: a band each, updates over the wires, and averages in the cloud."""

import numpy as np
import pytest
from cell_files import write_cells
from safetensors.numpy import load_file
from typed_commands import printed
from whole_runs import TIMED, configs
from whole_runs import play as simulate

from edgesim.engine.make_world import make_world
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams
from edgesim.tables.show import print_run

BITS = 17_881_664.0
WIRES_S = 0.05 + BITS / 1e9
"""From the east 0.05 s of latency and 17.9 Mbit over 1 Gbit/s; the west has its server beside it."""
LEARNING = {"training": "real"}


@pytest.fixture
def layout(tmp_path):
    """Two stations, of which the east has half of the band."""
    places_m = {"west": (-120.0, 0.0), "east": (120.0, 0.0)}

    def write(rate: float = 1e12, latency: float = 0.0) -> str:
        servers, links = ["west", "east"], [("west", "east", rate, latency)]
        return write_cells(tmp_path, places_m, links, {"east": 0.5}, edge_servers=servers)

    return write


def play(folder, file, **sections):
    base = {"rounds": 6, "devices": {"count": 40}, "round": {"payload_bits": BITS}, "topology": {"file": file}}
    digits = {"data": {"dataset": "digits", "samples_per_device": 20}}
    return simulate(folder, TIMED, digits, base, **sections)


def station_of(played, devices):
    """The station of each of some devices."""
    found = played.devices
    return found[found["frame"] == 1].set_index("device")["station"][devices].to_numpy()


def within_s(played, rows, column):
    """Seconds from the start of their round to an instant of rows."""
    return (rows[column] - rows["round"].map(played.rounds.set_index("round")["t_start_s"])).to_numpy()


def test_each_stations_reservations_stay_within_its_own_band(tmp_path, layout):
    played = play(tmp_path / "run", layout())
    uploads = played.uploads
    used_hz = uploads.groupby(["round", station_of(played, uploads["device"])])["bandwidth_hz"].sum().unstack()
    assert (used_hz[0] <= 20e6 * (1 + 1e-12)).all()
    assert (used_hz[1] <= 10e6 * (1 + 1e-12)).all()
    assert (used_hz.sum(axis=1) > 20e6).all()


def test_uploads_end_early_enough_for_the_wires_and_the_round_at_its_deadline(tmp_path, layout):
    played = play(tmp_path / "run", layout(rate=1e9, latency=0.05))
    uploads, computes = played.uploads, played.activities.query("activity == 'compute'")
    is_east = station_of(played, uploads["device"]) == 1
    assert within_s(played, uploads, "t_end_s") == pytest.approx(1.0 - WIRES_S * is_east)
    assert set(uploads["outcome"]) == {"done"}
    assert played.rounds["t_end_s"].to_numpy() == pytest.approx(np.arange(1, 7))
    # The model, too, is as long on its way.
    begin_s = WIRES_S * (station_of(played, computes["device"]) == 1)
    assert within_s(played, computes, "t_start_s") == pytest.approx(begin_s, abs=1e-9)


FADING = {"radio": {"fading": "rayleigh"}}


def test_an_update_that_is_still_on_the_wires_at_the_deadline_is_late(tmp_path, layout):
    """Fading spreads the ends of uploads: some end before the deadline, but too late for the wires."""
    played = play(tmp_path / "run", layout(latency=0.4), **FADING, round={"tmax_s": 1.5})
    uploads, merged = played.uploads.query("outcome == 'late'"), played.updates
    on_wires = uploads[within_s(played, uploads, "t_end_s") < 1.5 - 1e-6]
    assert len(on_wires) > 0
    assert on_wires["bits"].to_numpy() == pytest.approx(BITS)
    late = set(zip(uploads["round"], uploads["device"], strict=True))
    assert not late & set(zip(merged["round"], merged["device"], strict=True))


def test_an_average_in_the_cloud_prolongs_its_round_by_the_longest_way(tmp_path, layout):
    nested = {"aggregation": "hierarchical", "cloud_every": 3}
    played = play(tmp_path / "run", layout(rate=1e9, latency=0.05), topology=nested)
    lengths_s = (played.rounds["t_end_s"] - played.rounds["t_start_s"]).to_numpy()
    assert lengths_s == pytest.approx([1, 1, 1 + WIRES_S, 1, 1, 1 + WIRES_S])
    assert played.metric("backhaul_bits").to_dict() == {3: BITS, 6: BITS}


@pytest.mark.parametrize("weights", ["samples", "equal"])
def test_an_average_in_every_round_equals_flat_averaging(weights, tmp_path, layout):
    """Edge means weighted by what was merged, then their mean: the mean over all, whoever took part."""
    sections = {"learning": LEARNING, "algorithm": {"weights": weights}, "data": {"partition": "quantity"}}
    nested, file = {"aggregation": "hierarchical", "cloud_every": 1}, layout()
    flat = play(tmp_path / "flat", file, **sections)
    hierarchical = play(tmp_path / "hierarchical", file, topology=nested, **sections)
    assert hierarchical.rounds["selected"].tolist() == flat.rounds["selected"].tolist()
    one, other = (load_file(played.folder / "model.safetensors") for played in (flat, hierarchical))
    for name in one:
        np.testing.assert_allclose(other[name], one[name], atol=2e-6)


def test_between_averages_the_edge_servers_models_go_their_own_ways(tmp_path, layout):
    file = layout()
    every, seldom = (
        play(tmp_path / str(k), file, topology={"aggregation": "hierarchical", "cloud_every": k}, learning=LEARNING)
        for k in (1, 6)
    )
    assert every.rounds["test_loss"][0] == pytest.approx(seldom.rounds["test_loss"][0], rel=1e-5)
    assert every.rounds["test_loss"][5] != pytest.approx(seldom.rounds["test_loss"][5], rel=1e-3)


def test_devices_join_and_use_the_station_whose_own_line_of_sight_and_shadowing_are_best(layout):
    """By hand from the streams of each link: sight and shadowing are drawn per device and station, once per run."""
    sections = {"radio": {"channel": "umi-street-canyon"}, "topology": {"file": layout()}}
    config = simulation.complete(configs(TIMED | {"devices": {"count": 2000}})(**sections))
    streams, ids = Streams(3), np.arange(2000)
    world = make_world(config, streams)
    law, people = world.environment.path_loss, world.places
    sees, gains = [], []
    for suffix, x_m in (("", -120.0), ("-1", 120.0)):
        distance_m = np.maximum(np.hypot(people.x_m - x_m, people.y_m), 10.0)
        sees.append(streams.uniform(f"los{suffix}", ids) < law.los_probability(distance_m))
        shadow_db = np.where(sees[-1], 4.0, 7.82) * streams.normal(f"shadowing{suffix}", ids, 0)
        gains.append(10 ** (-(law.loss_db(distance_m, sees[-1]) + shadow_db) / 10))
    np.testing.assert_array_equal(people.station, np.argmax(gains, axis=0))
    np.testing.assert_allclose(world.gain(ids, 5, 0.0, people.station), np.max(gains, axis=0), rtol=1e-12)
    assert 0.2 < np.mean(sees[0] != sees[1]) < 0.8


def test_on_a_recorded_capacity_reserved_uploads_carry_their_part_of_it_and_end_at_the_deadline(tmp_path):
    sections = {"rounds": 4, "radio": {"channel": "recorded-capacity"}, "round": {"payload_bits": 2e6, "tmax_s": 1.5}}
    played = simulate(tmp_path / "run", TIMED, sections)
    uploads = played.uploads
    assert (uploads["outcome"] == "done").all()
    assert (played.rounds["arrived"] >= 3).all()
    assert uploads["t_end_s"].to_numpy() == pytest.approx(1.5 * uploads["round"].to_numpy())
    assert (uploads.groupby("round")["bandwidth_hz"].sum() <= 20e6 * (1 + 1e-9)).all()
    # By a plain sum over the table's seconds.
    table = make_world(simulation.complete(configs(TIMED)(**sections)), Streams(0)).environment.capacity
    for row in uploads.itertuples():
        edges = np.unique(np.clip(np.append(table.t_s, [row.t_start_s, row.t_end_s]), row.t_start_s, row.t_end_s))
        bps = table.bps[np.searchsorted(table.t_s, edges[:-1], "right") - 1]
        assert (np.diff(edges) * bps).sum() * row.bandwidth_hz / 20e6 == pytest.approx(2e6, rel=1e-9)


def test_between_two_averages_the_model_that_is_tested_is_said_to_be_held_by_nobody(tmp_path):
    knobs = {"cloud_every": 3, "aggregation": "hierarchical"}
    learning = {"training": "real", "pretrain": False, "steps": 1}
    rounds = play(tmp_path, "three-cells", topology=knobs, learning=learning, evaluation={"samples": 20}).rounds
    assert rounds["model_held"].tolist() == [False, False, True] * 2
    assert "4 of 6 tests, between two averages in the cloud, are of the mean" in printed(print_run, tmp_path)
    flat = play(tmp_path / "flat", "three-cells", learning=learning, evaluation={"samples": 20, "every": 2}).rounds
    assert flat["model_held"].tolist() == [None, True] * 3
