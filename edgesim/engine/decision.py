"""Uploads of a round and their shares of the band: admission of the devices that a policy offers, then an allocator."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.devices.topology import Backhaul
from edgesim.engine.moving_places import MovingPlaces
from edgesim.engine.offers import Offers
from edgesim.engine.path_link import PathLink
from edgesim.engine.world import World
from edgesim.learning.accounts import Accounts
from edgesim.radio.allocators import ALLOCATORS, Allocator, Request, Sizes
from edgesim.radio.allocators.equal_finish import allocate as equal_finish
from edgesim.radio.link import PlannedLink
from edgesim.selection.column import Column
from edgesim.selection.view import Choice, RoundView

_SCAN = 64
"""Offers looked at in one scan, to begin with."""


@dataclass(frozen=True)
class Timeline:
    """Quantities on which the scheduler plans the candidates' uploads; seconds count from the round's start.

    A quantity of a `Column` is worked out once, and only for the candidates that are looked at.
    """

    world: World
    ids: Integers
    """Candidates, ascending, [n]."""
    station: Integers
    """The station of each, [n]."""
    delay_s: Floats | Column
    """Compute delay as the scheduler knows it, in seconds, [n]."""
    upload_bits: Column
    """Bits that each sends, [n]."""
    download_s: Callable[[Integers], Floats]
    """Seconds that the downloads of the candidates at some positions take, [n]."""
    ready_s: Column
    """Earliest start of each upload, in s, [n]."""
    due_s: Floats
    """Latest end of a station's uploads, in s, [M]: early enough for the largest of all of them."""
    gain: Column
    """Average gain of each to its station at the instant of the decision, [n]."""
    rx_power_w: Column
    """Received power that each upload is planned on, [n]: the average, or with ``round.outage`` what fading falls below
    with that probability."""
    need_hz: Column
    """Least bandwidth that ends each upload by the deadline, [n]; inf where none does."""
    t_start_s: float
    """The round's start on the run's clock."""
    tmax_s: float
    """The round's deadline."""
    links: Sequence[PlannedLink]
    """The link of the uploads to each station that the plan goes by, [M]."""
    accounts: Accounts


@dataclass(frozen=True)
class Planner:
    """World of a run, bits and work of its devices, and wires behind its stations, from which uploads are planned."""

    world: World
    accounts: Accounts
    backhaul: Backhaul


def make_timeline(
    planner: Planner,
    round: int,
    ids: Integers,
    delay_s: Floats | Column,
    t_start_s: float,
    tmax_s: float,
    decided_s: float | None = None,
    from_cloud: bool = True,
    draws: Integers | None = None,
    station: Integers | None = None,
) -> Timeline:
    """Make the timeline of the candidates ``ids`` in a ``round``, decided at its start or ``decided_s`` after it.

    ``station`` [n] is that of each, the one of the round's start when absent. ``draws`` are the numbers of the
    candidates' draws of the radio, [n], the round's when absent. ``from_cloud`` is
    whether the broadcast comes from the cloud, not from the edge servers; a device that is sent nothing does not wait
    for it.
    """
    world, accounts, backhaul = planner.world, planner.accounts, planner.backhaul
    at_s = t_start_s if decided_s is None else t_start_s + decided_s
    # Devices that wait for the decision began to work at the round's start, each with its station of then.
    count = len(ids)
    station = world.places.stations(ids, t_start_s) if station is None else station
    download_bits, upload_bits = accounts.plan(ids, round)
    most_bits = np.asarray(upload_bits).max(initial=0.0) if backhaul.has_wires else 0.0
    wires_s = backhaul.of_station_s
    if world.merges_where_started and decided_s is not None:
        # Devices that have changed their station meanwhile have other servers than their new stations.
        wires_s = backhaul.farthest_s
    due_s = tmax_s - wires_s(float(most_bits)) * accounts.sends

    def download(rows: Integers) -> Floats:
        bits = download_bits[rows]
        broadcast_s = backhaul.download_s(station[rows], bits, from_cloud)
        return np.asarray(broadcast_s + world.download_s(ids[rows], bits, accounts.model_bits))

    def ready(rows: Integers) -> Floats:
        return np.full(len(rows), decided_s) if decided_s is not None else np.asarray(download(rows) + delay_s[rows])

    def rx_power(rows: Integers) -> Floats:
        return world.rx_power_w(ids[rows], gain[rows]) * world.outage_factor

    def need(rows: Integers) -> Floats:
        some, bits, start_s, power_w = ids[rows], upload_bits[rows], ready_s[rows], rx_power_w[rows]
        need_hz = np.empty(len(some))
        for number, there in world.by_station(station[rows]):
            link, end_s = links[number], float(due_s[number])
            need_hz[there] = link.least_hz(some[there], bits[there], start_s[there], end_s, power_w[there], t_start_s)
        return need_hz

    # The functions know columns, not the timeline, which would keep itself alive.
    gain = Column(
        count, lambda rows: world.gain(ids[rows], round if draws is None else draws[rows], at_s, station[rows])
    )
    links: Sequence[PlannedLink] = world.links
    if (moving := world.moving) is not None:
        links = path_links(world, moving, at_s, ids, round if draws is None else draws)
    ready_s, rx_power_w = Column(count, ready), Column(count, rx_power)
    planned = upload_bits, download, ready_s, due_s, gain, rx_power_w, Column(count, need)
    return Timeline(world, ids, station, delay_s, *planned, t_start_s, tmax_s, links, accounts)


def path_links(
    world: World, moving: MovingPlaces, at_s: float, ids: Integers, draws: int | Integers
) -> Sequence[PlannedLink]:
    """The link to each station that plans go by of devices that move, [n], decided at an instant.

    ``draws`` is the number of their draws, or that of each, [n].

    With ``round.path_knowledge = "present"`` the gain at the decision is planned on as if it stayed.
    """
    knowledge = world.config.round.path_knowledge
    if knowledge is None or knowledge == "present":
        return world.links

    def numbers(some: Integers) -> int | Integers:
        return draws if isinstance(draws, int) else draws[np.searchsorted(ids, some)]

    def power_w(some: Integers, gain: Floats) -> Floats:
        return world.rx_power_w(some, gain) * world.outage_factor

    return [PathLink(moving, number, knowledge, at_s, numbers, power_w) for number in range(len(world.bands_hz))]


def admit(
    policy: str, choice: Choice, view: RoundView, station: Integers, bands_hz: Floats, count: int | None
) -> Integers:
    """Positions in the view of the candidates taken, in the order in which the ``choice`` of a ``policy`` offers them.

    By band: those whose least bandwidth still fits into the band of their ``station`` [n], one of ``bands_hz`` [M]. By
    count: the first ``count``. Raises `EdgesimError` when it offers anything but candidates, each once.
    """
    taken: list[int] = []
    used = np.zeros(len(bands_hz))
    offers = Offers(policy, view.round, view.ids, "the candidates")
    if not isinstance(choice, Generator):
        got = type(choice).__name__
        raise EdgesimError(f"selection.policy {policy!r}: choose returned {got}; yield the offers", "selection.policy")
    try:
        offer = next(choice)
        while True:
            if isinstance(offer, np.ndarray):
                rows = offers.rows(offer)
                if count is None:
                    fits = _fill_stations(view.need_hz, rows, station, used, bands_hz)
                else:
                    fits = np.arange(len(rows)) < count - len(taken)
                taken += rows[fits].tolist()
                answer: bool | Booleans = fits
            else:
                row = offers.row(offer)
                answer = count is not None or _fits(view.need_hz, row, station, used, bands_hz)
                if answer:
                    taken.append(row)
            if len(taken) == count:
                choice.close()
                break
            offer = choice.send(answer)
    except StopIteration:
        pass
    return np.array(taken, dtype=np.int64)


def exceed(need_hz: Floats, station: Integers, bands_hz: Floats) -> bool:
    """Whether least bandwidths [n] add up to more than the band of some ``station`` [n], one of ``bands_hz`` [M]."""
    total_hz = np.bincount(station, weights=need_hz, minlength=len(bands_hz))
    # Admission adds them up in another order, so the sum may exceed the band by rounding.
    return bool(np.count_nonzero(total_hz > bands_hz * (1 + 1e-9)))


def _fits(needs_hz: Floats | Column, row: int, station: Integers, used: Floats, limits: Floats) -> bool:
    """Whether a candidate fits into the band of its station; ``used`` grows if it does."""
    band, need_hz = station[row], float(needs_hz[row])
    if not used[band] + need_hz <= limits[band]:
        return False
    used[band] += need_hz
    return True


def _fill_stations(
    needs_hz: Floats | Column, rows: Integers, station: Integers, used: Floats, limits: Floats
) -> Booleans:
    """Whether each row offered fits, in order, [n]; ``used`` grows. A station's band serves its own devices alone."""
    if len(limits) == 1:
        fits, used[0] = _fill(needs_hz, rows, float(used[0]), float(limits[0]))
        return fits
    fits = np.zeros(len(rows), dtype=bool)
    for band in np.unique(station[rows]).tolist():
        there = np.flatnonzero(station[rows] == band)
        fits[there], used[band] = _fill(needs_hz, rows[there], float(used[band]), float(limits[band]))
    return fits


def _fill(needs_hz: Floats | Column, rows: Integers, used_hz: float, band_hz: float) -> tuple[Booleans, float]:
    """Whether each row offered fits, in order, [n], and the band used then.

    Rows are passed over by array comparisons where they have no place even before those ahead of them are taken.
    """
    fits = np.zeros(len(rows), dtype=bool)
    start, length = 0, _SCAN
    while start < len(rows):
        ahead = needs_hz[rows[start : start + length]]
        possible = (used_hz + ahead <= band_hz).nonzero()[0]
        for place, need_hz in zip(possible.tolist(), ahead[possible].tolist(), strict=True):
            if used_hz + need_hz <= band_hz:
                fits[start + place] = True
                used_hz += need_hz
        start, length = start + length, 2 * length
    return fits, used_hz


def share(timeline: Timeline, taken: Integers, bands_hz: Floats, allocator: Allocator | None = None) -> Floats:
    """Bandwidths of the candidates taken (positions), [S], that share ``bands_hz`` [M] by an allocator.

    It is that of the config when absent. Devices that have nothing to send have no share.
    """
    world, shares_hz = timeline.world, np.zeros(len(taken))
    if world.own_links is not None:
        # There is no band to share, not even for uploads that are too slow on their own links.
        return shares_hz
    knobs = world.config.round
    if allocator is not None:
        allocate = allocator.allocate
    else:
        allocate = equal_finish if knobs.leftover == "equal_finish" else ALLOCATORS[knobs.allocator]().allocate
    sends = timeline.upload_bits[taken].nonzero()[0]
    rows = taken[sends]
    ids = timeline.ids[rows]
    columns = timeline.upload_bits, timeline.ready_s, timeline.rx_power_w, timeline.need_hz
    follow = timeline.accounts.up is not None and timeline.accounts.up.rule.known != "before the run"
    bits, ready_s, rx_power_w, needs_hz = (column[rows] for column in columns)
    if follow and (settings := settings_of_set(timeline.accounts, timeline.ids[taken])) is not None:
        bits, needs_hz = _changed(timeline, rows, bits, [settings[place] for place in sends.tolist()])
    for station, there in world.by_station(timeline.station[rows]) if len(ids) else ():
        request = Request(
            ids=ids[there],
            payload_bits=bits[there],
            ready_s=ready_s[there],
            rx_power_w=rx_power_w[there],
            need_hz=needs_hz[there],
            link=timeline.links[station],
            t_start_s=timeline.t_start_s,
            bandwidth_hz=float(bands_hz[station]),
            deadline_s=float(timeline.due_s[station]),
            sizes=_sizes(timeline.accounts, ids[there], bits[there]) if follow else None,
        )
        shares_hz[sends[there]] = _checked(allocate(request), request, knobs.allocator)
    return shares_hz


def settings_of_set(accounts: Accounts, ids: Integers) -> list[int] | None:
    """Settings of the updates of the devices taken, [S], where they go by their weights; else None."""
    charges = accounts.up
    if charges is None or charges.rule.known != "with the set" or not len(ids):
        return None
    weights = accounts.expected_weights(ids)
    return charges.rule.of_weights(weights / weights.sum())


def _changed(timeline: Timeline, rows: Integers, planned_bits: Floats, settings: list[int]) -> tuple[Floats, Floats]:
    """Bits and least bandwidths of uploads at some rows, [S], with settings that are not the planned one."""
    charges, need_hz = timeline.accounts.up, np.empty(len(rows))
    assert charges is not None
    bits, ids = charges.with_settings(planned_bits, settings), timeline.ids[rows]
    ready_s, rx_power_w = timeline.ready_s[rows], timeline.rx_power_w[rows]
    for station, there in timeline.world.by_station(timeline.station[rows]):
        asked = ids[there], bits[there], ready_s[there], float(timeline.due_s[station]), rx_power_w[there]
        need_hz[there] = timeline.links[station].least_hz(*asked, timeline.t_start_s)
    return bits, need_hz


def _sizes(accounts: Accounts, ids: Integers, planned_bits: Floats) -> Sizes:
    """Sizes that uploads may have, of devices [S] that are planned to send so many bits, [S]."""
    charges = accounts.up
    assert charges is not None
    count = len(ids)
    return Sizes(lambda s: charges.with_settings(planned_bits, [s] * count), accounts.expected_weights(ids))


def _checked(shares_hz: Floats, request: Request, name: str) -> Floats:
    """Shares of a band, [S]; raises `EdgesimError` that names the allocator for what no band can be shared by."""
    count, band_hz = len(request.ids), request.bandwidth_hz
    answer = type(shares_hz).__name__
    if isinstance(shares_hz, np.ndarray):
        if shares_hz.shape == (count,) and shares_hz.dtype.kind in "iuf":
            if shares_hz.min() >= 0 and shares_hz.sum() <= band_hz * (1 + 1e-9):
                return shares_hz
            answer = f"{shares_hz.min():.10g} to {shares_hz.max():.10g} Hz, {shares_hz.sum():.10g} Hz in all,"
        else:
            answer = f"an array of {shares_hz.dtype} and shape {shares_hz.shape}"
    raise EdgesimError(
        f"round.allocator {name!r}: allocate returned {answer} for {count} uploads; expected an array of 0 Hz or more "
        f"for each, at most {band_hz:.10g} Hz in all",
        "round.allocator",
    )
