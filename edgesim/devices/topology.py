"""Stations, edge servers and the cloud: a graph read from a file under ``topologies/``, and its transfer times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import Field, model_validator

from edgesim.base.arrays import Floats, Integers
from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import BitsPerSecond, Factor, Metres, Seconds
from edgesim.base.text_file import read_toml
from edgesim.base.validation import validate
from edgesim.config import Section

if TYPE_CHECKING:
    import networkx as nx


class Station(Section):
    """A base station with its own band; stations do not interfere with each other."""

    name: str = Field(min_length=1)
    x_m: Metres = Field(ge=-1e7)
    y_m: Metres = Field(ge=-1e7)
    bandwidth_share: Factor = Field(1.0, gt=0)
    """The station's band, as a share of ``radio.bandwidth_hz``."""


class BackhaulLink(Section):
    """A wired link, the same in both directions; transfers do not slow each other down."""

    between: list[str] = Field(min_length=2, max_length=2)
    rate_bps: BitsPerSecond = Field(ge=1e-3)
    latency_s: Seconds = Field(0.0, ge=0)

    def delay_s(self, bits: float) -> float:
        """Seconds that a message takes to cross the link: latency + bits / rate (store and forward)."""
        return self.latency_s + bits / self.rate_bps

    @property
    def key(self) -> str:
        """The link's name in tables."""
        return "-".join(self.between)


class Topology(Section):
    """The wired side of the network. Devices are not among its nodes: each has an index into ``stations``.

    The cloud and the edge servers are nodes of their own, or are located at a station and have its name.
    """

    name: str = Field(min_length=1)
    source: str = Field(min_length=1)
    cloud: str = Field(min_length=1)
    edge_servers: list[str] = Field(default_factory=list)
    stations: list[Station] = Field(min_length=1)
    links: list[BackhaulLink] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key, names in self.named.items():
            if twice := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"{key}: the name {twice[0]!r} is given twice")
        nodes = self.nodes
        first_row: dict[frozenset[str], int] = {}
        for row, link in enumerate(self.links):
            for end in link.between:
                if end not in nodes:
                    raise ValueError(f"links[{row}].between: no node {end!r}; known: {', '.join(nodes)}")
            if link.between[0] == link.between[1]:
                raise ValueError(f"links[{row}].between: {link.between[0]!r} is linked to itself")
            if (first := first_row.setdefault(frozenset(link.between), row)) != row:
                left, right = link.between
                raise ValueError(f"links[{row}].between: {left!r} and {right!r} are linked in links[{first}] already")
        return self

    @property
    def named(self) -> dict[str, list[str]]:
        """Names of the stations and of the edge servers, by their keys."""
        return {"stations": [station.name for station in self.stations], "edge_servers": self.edge_servers}

    @property
    def nodes(self) -> list[str]:
        """Names of the cloud, the edge servers and the stations, each once."""
        return list(dict.fromkeys([self.cloud, *self.edge_servers, *self.named["stations"]]))

    @property
    def xy_m(self) -> Floats:
        """Positions of the stations, [M, 2]."""
        return np.array([(station.x_m, station.y_m) for station in self.stations])

    @property
    def bandwidth_share(self) -> Floats:
        """Bands of the stations as shares of ``radio.bandwidth_hz``, [M]."""
        return np.array([station.bandwidth_share for station in self.stations])

    def graph(self, bits: float) -> "nx.Graph":
        """The nodes and links; the attribute ``delay_s`` of a link is its delay for a message of so many bits."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.nodes)
        for link in self.links:
            graph.add_edge(*link.between, delay_s=link.delay_s(bits), link=link)
        return graph


ONE_STATION = Topology(
    name="one station",
    source="the papers' single cell, its server beside it",
    cloud="station",
    stations=[Station(name="station", x_m=0.0, y_m=0.0)],
)
"""Without a topology file: one station at the centre with the server beside it, reached in no time."""


def load_topology(name_or_path: str) -> Topology:
    """Read and check a topology, a path or the bare name of a file under ``topologies/``.

    Raises `EdgesimError` that names the file, the key and what was expected, also for a station or an edge server
    from which no path leads to the cloud.
    """
    path = find("topologies", name_or_path, ".toml", "topology.file")
    topology = validate(Topology, read_toml(path), str(path))
    import networkx as nx

    reached = nx.node_connected_component(topology.graph(0.0), topology.cloud)
    for key, nodes in topology.named.items():
        if (lost := next((node for node in nodes if node not in reached), None)) is not None:
            where, cloud = f"{path}: {key}[{nodes.index(lost)}]", topology.cloud
            raise EdgesimError(f"{where}: no path of links leads from {lost!r} to the cloud {cloud!r}")
    return topology


@dataclass(frozen=True)
class Backhaul:
    """The wired paths between stations, servers and cloud, chosen to be the quickest for a model."""

    edge: Integers
    """The server that merges the updates of each station: position in ``servers``, [M]."""
    servers: Sequence[str]
    """Nodes that merge updates in every round: the cloud alone, or the edge servers."""
    paths: Sequence[Sequence[Sequence[BackhaulLink]]]
    """Links on the path between each server and each station, starting at the server, [E, M]."""
    server_links: Sequence[Sequence[BackhaulLink]]
    """Links on the path between each server and the cloud, starting at the cloud, [E]."""

    @cached_property
    def station_links(self) -> Sequence[Sequence[BackhaulLink]]:
        """Links on the path between each station and its own server, starting at the server, [M]."""
        return [self.paths[server][station] for station, server in enumerate(self.edge.tolist())]

    @cached_property
    def has_wires(self) -> bool:
        """Whether there are links between any stations, servers and the cloud; without, messages take no time."""
        return any(self.station_links) or any(self.server_links)

    def of_station_s(self, bits: float) -> Floats:
        """Seconds that a message takes from each station to its server, or back, [M]."""
        return np.array([_path_s(links, bits) for links in self.station_links], dtype=float)

    def to_cloud_s(self, bits: float) -> Floats:
        """Seconds that a message takes from each server to the cloud, or back, [E]; 0 for the cloud itself."""
        return np.array([_path_s(links, bits) for links in self.server_links], dtype=float)

    def broadcast_s(self, bits: float, from_cloud: bool) -> Floats:
        """Seconds that a message takes from the cloud, or from each station's server, to each station, [M]."""
        of_station_s = self.of_station_s(bits)
        return of_station_s + self.to_cloud_s(bits)[self.edge] if from_cloud else of_station_s

    def upload_s(self, station: Integers, bits: Floats) -> Floats:
        """Seconds that messages of ``bits`` [n] take from their ``station`` [n] to its server, [n]."""
        return self._by_size(bits, station, self.of_station_s)

    def farthest_s(self, bits: float) -> Floats:
        """Seconds that a message takes from each station to the server that it reaches last, [M]."""
        every_s = np.array([[_path_s(links, bits) for links in of_server] for of_server in self.paths])
        return np.asarray(every_s.max(axis=0))

    def crossed_s(self, station: int, server: int, bits: float) -> float:
        """Seconds that a message takes from a station to any server, its own or another one."""
        return _path_s(self.paths[server][station], bits)

    def download_s(self, station: Integers, bits: Floats, from_cloud: bool) -> Floats:
        """Seconds that messages of ``bits`` [n] take to their ``station`` [n], [n]; 0 for a message of 0 bits."""
        return self._by_size(bits, station, lambda size: self.broadcast_s(size, from_cloud) * (size > 0))

    def _by_size(self, bits: Floats, station: Integers, of_size_s: Callable[[float], Floats]) -> Floats:
        """Seconds of each message [n]: the entry of its station in ``of_size_s(bits)``, [M]."""
        seconds = np.zeros(len(bits))
        for size in np.unique(bits).tolist() if self.has_wires else ():
            rows = bits == size
            seconds[rows] = of_size_s(size)[station[rows]]
        return seconds


def make_backhaul(topology: Topology, bits: float, hierarchical: bool) -> Backhaul:
    """The quickest paths (Dijkstra over the links' delays) for a message of ``bits``; messages of all sizes use them.

    Flat: every station's updates go to the cloud. Hierarchical: they go to the edge server that they reach quickest, or
    to the first one listed among equally quick ones.
    """
    if len(topology.nodes) == 1:
        # Nothing to look for, and networkx takes long to load.
        return Backhaul(np.zeros(len(topology.stations), dtype=np.int64), topology.nodes, [[[]]], [[]])
    import networkx as nx

    graph = topology.graph(bits)
    servers = topology.edge_servers if hierarchical else [topology.cloud]
    from_server = [nx.single_source_dijkstra(graph, server, weight="delay_s") for server in servers]
    stations = topology.named["stations"]
    edge = [int(np.argmin([lengths.get(name, np.inf) for lengths, _ in from_server])) for name in stations]
    cloud_paths = nx.single_source_dijkstra_path(graph, topology.cloud, weight="delay_s")
    return Backhaul(
        edge=np.array(edge, dtype=np.int64),
        servers=servers,
        paths=[[_links(graph, paths[name]) for name in stations] for _, paths in from_server],
        server_links=[_links(graph, cloud_paths[server]) for server in servers],
    )


def _links(graph: "nx.Graph", path: Sequence[str]) -> list[BackhaulLink]:
    return [graph.edges[pair]["link"] for pair in pairwise(path)]


def _path_s(links: Sequence[BackhaulLink], bits: float) -> float:
    return sum(link.delay_s(bits) for link in links)
