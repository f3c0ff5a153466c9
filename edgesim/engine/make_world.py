"""From a config to the physical world: population, stations, radio environment and availability."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import GIVEN, Rule, refuse
from edgesim.config import DevicesConfig, MobilityConfig, RunConfig
from edgesim.devices.attachment import attach
from edgesim.devices.event_a3 import ROUNDING_S
from edgesim.devices.places import FixedPlaces, places_around_one_station
from edgesim.devices.population import Population, make_population
from edgesim.devices.topology import ONE_STATION, Topology, load_topology
from edgesim.engine.clock import drift_s
from edgesim.engine.moving_places import FEW_STATIONS, MovingPlaces
from edgesim.engine.world import World
from edgesim.mobility.chords_ahead import ChordsAhead
from edgesim.mobility.models import make_paths
from edgesim.mobility.paths import Ground
from edgesim.radio.environment import Environment, RecordedEnvironment, load_environment
from edgesim.radio.link import Link, OwnLinks, RecordedOwnLinks
from edgesim.radio.link_file import load_links
from edgesim.radio.maps import draw_maps
from edgesim.radio.place_gains import DrawnGains, MapGains
from edgesim.radio.squares import Squares
from edgesim.streams import Streams
from edgesim.traces import models
from edgesim.traces.search import Search

_RECORDED = Rule(
    {"radio.channel": GIVEN},
    {"mobility": None, "radio.shadowing": None, "radio.fading": (None, "none"), "round.outage": None},
    "the recorded capacity contains it",
)


def make_world(config: RunConfig, streams: Streams, on_long: Callable[[str], None] = lambda _: None) -> World:
    """Make the world of a complete config; ``on_long`` takes messages on long searches. Raises `EdgesimError`."""
    environment = load_environment(config.radio.channel)
    if not environment.has_path_loss:
        refuse(config, [_RECORDED])
    else:
        own = config.radio.model_dump(include={"shadowing", "fading"}, exclude_none=True)
        if config.radio.shadowing == "map":
            del own["shadowing"]
        environment = environment.model_copy(update=own)
        if environment.fading == "none":
            refuse(config, [Rule({"radio.channel": GIVEN}, {"round.outage": None}, "it has no fading to plan for")])
    count = config.devices.count
    end_s = np.inf if config.stop_at_s is None else config.stop_at_s + drift_s(config.round.tmax_s)
    search = Search(config.availability.searched_s, end_s, on_long)
    availability = models.make_availability(config.availability, count, streams, config.stop_at_s, search)
    population = make_population(config.devices, availability.keys)
    own_links = None
    if config.radio.sharing == "own":
        own_links = _own_links(config.devices, population, config.stop_at_s)
    else:
        environment = environment.for_run_until(config.stop_at_s)
    topology, places = ONE_STATION, places_around_one_station(config.devices, streams)
    if config.topology.file is not None:
        topology = load_topology(config.topology.file)
        if config.topology.aggregation == "hierarchical" and not topology.edge_servers:
            refuse(config, [Rule({"topology.file": GIVEN}, {"topology.aggregation": "flat"}, "it has no edge_servers")])
    moving = None
    if config.mobility is not None:
        # Of a recorded capacity motion was refused above.
        of_law = cast(Environment, environment)
        moving = make_moving_places(config, config.mobility, places, topology, of_law, streams)
    elif config.topology.file is not None:
        places = _attach(config, places, topology, environment, streams)
    parts = environment, availability, topology, own_links, search, moving
    return World(config, streams, population, moving or places, *parts)


def make_moving_places(
    config: RunConfig,
    mobility: MobilityConfig,
    placed: FixedPlaces,
    topology: Topology,
    environment: Environment,
    streams: Streams,
) -> MovingPlaces:
    """The places of devices that move, from where they are ``placed``; raises `EdgesimError`."""
    ground = Ground(config.devices.radius_m, placed.x_m, placed.y_m)
    paths = make_paths(mobility.model, mobility.options, ground, streams)
    if config.stop_at_s is not None:
        paths.need_known(config.stop_at_s)
    stations_m, least_m, side_m = topology.xy_m, config.devices.min_distance_m, config.radio.grid_m
    assert side_m is not None
    maps = gains = None
    if config.radio.shadowing == "map":
        between = config.radio.between_stations or 0.0
        maps = draw_maps(environment, Squares.covering(side_m, *paths.box), stations_m, least_m, streams, between)
        if len(stations_m) <= FEW_STATIONS:
            gains = maps.gains_to_all
    drawn = DrawnGains(environment, stations_m, least_m, streams) if maps is None else MapGains(maps)
    radio = drawn, environment.link(), stations_m, least_m
    behind_s = 0.0 if config.handover is None else config.handover.trigger_s + ROUNDING_S
    chords = ChordsAhead(paths, side_m, len(ground), gains, behind_s)
    return MovingPlaces(chords, *radio, config.topology.attach, maps)


def _own_links(config: DevicesConfig, population: Population, stop_at_s: float | None) -> Link:
    """A link for each device, recorded over time or as one rate."""
    if config.links is not None:
        return RecordedOwnLinks(load_links(config.links, config.count, population.keys).for_run_until(stop_at_s))
    if population.link_bps is None:
        raise EdgesimError(
            f"{find('traces', str(config.profile), '.parquet')}: has no column link_bps, which radio.sharing = 'own' "
            "needs; give it, name a file of devices.links, or share a band",
            "devices.links",
        )
    return OwnLinks(population.link_bps)


def _attach(
    config: RunConfig,
    places: FixedPlaces,
    topology: Topology,
    environment: Environment | RecordedEnvironment,
    streams: Streams,
) -> FixedPlaces:
    """The places with the station of each device; raises `EdgesimError` for a station that no device joins."""
    ids = np.arange(config.devices.count)
    x_m, y_m = topology.xy_m.T[:, :, np.newaxis]
    # No path-loss law is meant for the foot of the mast.
    distance_m = np.maximum(np.hypot(places.x_m - x_m, places.y_m - y_m), config.devices.min_distance_m)
    how = config.topology.attach
    if not environment.has_path_loss and how != "nearest" and len(topology.stations) > 1:
        refuse(config, [Rule({"radio.channel": GIVEN}, {"topology.attach": "nearest"}, "it has no path loss to go by")])
    gains = [environment.constant_power_gain(row_m, streams, ids, number) for number, row_m in enumerate(distance_m)]
    own = attach(how, np.array(gains), distance_m, topology.bandwidth_share)
    for number, site in enumerate(topology.stations):
        if not np.any(own == number):
            path = find("topologies", str(config.topology.file), ".toml")
            raise EdgesimError(
                f"{path}: stations[{number}]: no device joins {site.name!r} ({config.devices.count} devices within "
                f"{config.devices.radius_m:g} m, seed {config.seed}); move or remove it, or raise devices.count",
                "devices.count",
            )
    return replace(places, station=own, distance_m=distance_m[own, ids])
