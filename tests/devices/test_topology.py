"""The backhaul graph: its quickest paths against SciPy's, and what is refused in one line."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import in_one_line
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from edgesim.base.content import names
from edgesim.devices.topology import ONE_STATION, BackhaulLink, Station, Topology, load_topology, make_backhaul

BITS = 17_881_664.0


def test_three_cells_cross_the_metro_fibre_and_then_the_long_link():
    topology = load_topology("three-cells")
    metro_s, long_s = 0.001 + BITS / 1e9, 0.02 + BITS / 200e6
    edge = make_backhaul(topology, BITS, hierarchical=True)
    assert list(edge.servers) == ["edge-west", "edge-east"]
    assert edge.edge.tolist() == [0, 0, 1]
    assert edge.of_station_s(BITS).tolist() == pytest.approx([metro_s] * 3)
    assert edge.to_cloud_s(BITS).tolist() == pytest.approx([long_s] * 2)
    assert edge.broadcast_s(BITS, from_cloud=False).tolist() == pytest.approx([metro_s] * 3)
    assert edge.broadcast_s(BITS, from_cloud=True).tolist() == pytest.approx([metro_s + long_s] * 3)
    flat = make_backhaul(topology, BITS, hierarchical=False)
    assert flat.of_station_s(BITS).tolist() == pytest.approx([metro_s + long_s] * 3)
    assert flat.to_cloud_s(BITS).tolist() == [0.0]
    assert [link.key for link in flat.station_links[2]] == ["edge-east-cloud", "east-edge-east"]


def test_one_station_without_a_file_has_no_wires():
    backhaul = make_backhaul(ONE_STATION, BITS, hierarchical=False)
    assert backhaul.of_station_s(BITS).tolist() == [0.0]
    assert backhaul.broadcast_s(BITS, from_cloud=True).tolist() == [0.0]
    assert [list(links) for links in backhaul.station_links] == [[]]


@given(st.data())
def test_the_paths_are_as_quick_as_scipys(data):
    count = data.draw(st.integers(1, 6))
    nodes = ["cloud", *(f"s{station}" for station in range(count))]
    pairs = [(a, b) for a in range(len(nodes)) for b in range(a)]
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=count, unique=True))
    links = [
        BackhaulLink(
            between=[nodes[a], nodes[b]], rate_bps=data.draw(st.floats(1e6, 1e9)), latency_s=data.draw(st.floats(0, 1))
        )
        for a, b in chosen
    ]
    delays = [link.delay_s(BITS) for link in links]
    ends = np.array(chosen)
    matrix = coo_array((delays, (ends[:, 0], ends[:, 1])), shape=(len(nodes), len(nodes)))
    expected = dijkstra(matrix.tocsr(), directed=False, indices=0)[1:]
    assume(np.isfinite(expected).all())
    stations = [Station(name=name, x_m=0.0, y_m=0.0) for name in nodes[1:]]
    topology = Topology(name="drawn", source="test", cloud="cloud", stations=stations, links=links)
    backhaul = make_backhaul(topology, BITS, hierarchical=False)
    assert backhaul.of_station_s(BITS) == pytest.approx(expected)
    by_key = {link.key: link.delay_s(BITS) for link in links}
    found = [sum(by_key[link.key] for link in path) for path in backhaul.station_links]
    assert found == pytest.approx(expected)


def test_every_shipped_topology_loads():
    assert {"one-cell", "three-cells", "seven-cells"} <= set(names("topologies", ".toml"))
    for name in names("topologies", ".toml"):
        assert load_topology(name).stations


GOOD = """
name = "two"
source = "test"
cloud = "cloud"
edge_servers = ["edge"]
[[stations]]
name = "a"
x_m = 0.0
y_m = 0.0
[[stations]]
name = "b"
x_m = 9.0
y_m = 0.0
[[links]]
between = ["a", "edge"]
rate_bps = 1e9
[[links]]
between = ["b", "edge"]
rate_bps = 1e9
[[links]]
between = ["edge", "cloud"]
rate_bps = 1e9
"""
LINK = '[[links]]\nbetween = ["b", "edge"]\nrate_bps = 1e9\n'
TWICE = LINK + LINK.replace('"b", "edge"', '"edge", "b"')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"b", "edge"', '"b", "egde"', r"links\[1\].between: no node 'egde'; known: cloud, edge"),
        ('"b", "edge"', '"b", "b"', r"links\[1\].between: 'b' is linked to itself"),
        (LINK, TWICE, r"links\[2\].between: 'edge' and 'b' are linked in links\[1\] already"),
        ('"b", "edge"', '"b"', r"links\[1\].between: list should have at least 2 items"),
        (LINK, "", r"stations\[1\]: no path of links leads from 'b' to the cloud 'cloud'"),
        ('name = "b"', 'name = "a"', "stations: the name 'a' is given twice"),
        ('edge_servers = ["edge"]', 'edge_servers = ["edge", "far"]', r"edge_servers\[1\]: no path of links .* 'far'"),
        ("rate_bps = 1e9", "rate_bps = 0.0", r"links\[0\].rate_bps: input should be greater than or equal to 0.001"),
        ("x_m = 9.0", "x_m = nan", r"stations\[1\].x_m: input should be a finite number"),
        ("x_m = 9.0", "x_km = 9.0", r"unknown key 'stations\[1\].x_km', did you mean 'stations\[1\].x_m'"),
    ],
)
def test_a_broken_file_is_one_line_that_names_file_and_key(tmp_path, old, new, message):
    path = tmp_path / "layout.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with in_one_line(message) as refused:
        load_topology(str(path))
    assert str(path) in str(refused.value)


def test_all_messages_take_the_path_that_is_quickest_for_a_model():
    """Models go round by the fast links; a message of no bits would be quicker on the slow one, but follows them."""
    stations = [Station(name="far", x_m=0.0, y_m=0.0), Station(name="near", x_m=1.0, y_m=0.0)]
    links = [
        BackhaulLink(between=["far", "cloud"], rate_bps=1e6, latency_s=0.0),
        BackhaulLink(between=["far", "near"], rate_bps=1e9, latency_s=0.1),
        BackhaulLink(between=["near", "cloud"], rate_bps=1e9, latency_s=0.1),
    ]
    topology = Topology(name="two ways", source="test", cloud="cloud", stations=stations, links=links)
    backhaul = make_backhaul(topology, 1e7, hierarchical=False)
    assert backhaul.upload_s(np.array([0, 0]), np.array([1e7, 1e3])).tolist() == pytest.approx([0.22, 0.200002])
