"""One round of devices that are handed over, simulated plainly: every change of any gain is an event of its own.

Nothing here knows edgesim: devices go straight, gains are of the macro law without shadowing at the middles of squares'
chords, conditions of event A3 are kept per device and neighbour, and least bandwidths are found by bisection.
"""

import bisect
import itertools
import math
from dataclasses import dataclass, field

SIDE_M, LEAST_M, WAY_S = 5.0, 10.0, 16.0
NOISE_W_PER_HZ, POWER_W = 10.0 ** ((-174.0 - 30.0) / 10.0), 10.0 ** ((23.0 - 30.0) / 10.0)
_SAME_S = 1e-9


@dataclass
class Cells:
    """What the devices of a round share."""

    stations_m: list[tuple[float, float]]
    band_hz: float
    is_reshared: bool
    upload: str
    interruption_s: float
    trigger_s: float
    hysteresis_db: float
    bits: float
    compute_s: float
    due_s: float


@dataclass
class Device:
    """A device on its straight way, with what it has sent so far."""

    number: int
    x_m: float
    y_m: float
    vx_mps: float
    vy_mps: float
    station: int = 0
    granted_hz: float = 0.0
    reserved_hz: float = 0.0
    left_bits: float = 0.0
    has_begun: bool = False
    """Whether any of its bits were sent, or might have been."""
    silent_until_s: float = -math.inf
    queued_s: float | None = None
    phase: str = "compute"
    since_s: float = 0.0
    sent_bits: float = 0.0
    held: dict[int, float] = field(default_factory=dict)
    edges_s: list[float] = field(default_factory=list)
    gains: list[list[float]] = field(default_factory=list)
    uploads: list[tuple[float, float, float, str]] = field(default_factory=list)
    handovers: list[tuple[float, int, int, str]] = field(default_factory=list)


def lay_out(device: Device, cells: Cells) -> None:
    """The instants at which a device enters squares on its way, and the gains in dB to all stations behind each."""
    edges = {0.0, WAY_S}
    for start_m, speed_mps in ((device.x_m, device.vx_mps), (device.y_m, device.vy_mps)):
        first, last = sorted((start_m, start_m + speed_mps * WAY_S))
        lines = range(math.ceil(first / SIDE_M), math.floor(last / SIDE_M) + 1)
        edges |= {(line * SIDE_M - start_m) / speed_mps for line in lines}
    device.edges_s = sorted(edges)
    for begin_s, end_s in itertools.pairwise(device.edges_s):
        middle_s = (begin_s + end_s) / 2
        x_m, y_m = device.x_m + device.vx_mps * middle_s, device.y_m + device.vy_mps * middle_s
        away = [max(math.hypot(x_m - sx, y_m - sy), LEAST_M) for sx, sy in cells.stations_m]
        device.gains.append([-(128.1 + 37.6 * math.log10(metres / 1000.0)) for metres in away])


def gain_db(device: Device, t_s: float) -> list[float]:
    return device.gains[bisect.bisect_right(device.edges_s, t_s + _SAME_S) - 1]


def rate_bps(hz: float, db: float) -> float:
    return hz * math.log2(1.0 + POWER_W * 10.0 ** (db / 10.0) / (hz * NOISE_W_PER_HZ)) if hz else 0.0


def least_hz(bits: float, seconds: float, db: float) -> float:
    """The least bandwidth by bisection; inf where none is enough."""
    if seconds <= 0 or POWER_W * 10.0 ** (db / 10.0) / (NOISE_W_PER_HZ * math.log(2)) * seconds <= bits:
        return math.inf
    low, high = 0.0, 1.0
    while rate_bps(high, db) * seconds < bits:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if rate_bps(middle, db) * seconds < bits else (low, middle)
    return high


def simulate(cells: Cells, devices: list[Device]) -> None:
    """Play the round; each device then has its uploads (start, end, bits, outcome) and its handovers."""
    for device in devices:
        lay_out(device, cells)
        first = gain_db(device, 0.0)
        device.station, device.left_bits = first.index(max(first)), cells.bits
    for device in devices:
        device.granted_hz = cells.band_hz / sum(other.station == device.station for other in devices)
        hold(device, 0.0, cells)
    now_s = 0.0
    while now_s < cells.due_s - _SAME_S:
        rates = rates_of(cells, devices, now_s)
        then_s = min(next_s(cells, devices, rates, now_s), cells.due_s)
        for device in devices:
            sent = rates[device.number] * (then_s - now_s)
            device.left_bits, device.sent_bits = device.left_bits - sent, device.sent_bits + sent
        now_s = then_s
        step(cells, devices, rates, now_s)
    for device in devices:
        if device.phase == "upload":
            log(device, now_s, "late")


def rates_of(cells: Cells, devices: list[Device], t_s: float) -> list[float]:
    rates = []
    for device in devices:
        hz = device.granted_hz
        if cells.is_reshared and device.phase == "upload":
            there = [one.granted_hz for one in devices if one.phase == "upload" and one.station == device.station]
            hz = cells.band_hz * hz / sum(there)
        rates.append(rate_bps(hz, gain_db(device, t_s)[device.station]) if device.phase == "upload" else 0.0)
    return rates


def next_s(cells: Cells, devices: list[Device], rates: list[float], now_s: float) -> float:
    """The next instant at which anything changes."""
    at = []
    for device in devices:
        if device.phase in ("over", "lost"):
            continue
        at += [edge_s for edge_s in device.edges_s if edge_s > now_s + _SAME_S][:1]
        at += [held_s + cells.trigger_s for held_s in device.held.values()]
        at += [cells.compute_s] if device.phase == "compute" else []
        at += [device.silent_until_s] if device.phase == "silence" else []
        at += [now_s + device.left_bits / rates[device.number]] if rates[device.number] else []
    return min((one for one in at if one > now_s), default=cells.due_s)


def step(cells: Cells, devices: list[Device], rates: list[float], now_s: float) -> None:
    """All that happens at one instant: ends of uploads, computing and silence, then conditions and handovers."""
    for device in devices:
        if device.phase == "upload" and device.left_bits <= rates[device.number] * _SAME_S:
            log(device, now_s, "done")
            device.phase = "over"
            serve(cells, devices, device.station, now_s)
        elif (device.phase == "compute" and now_s >= cells.compute_s - _SAME_S) or (
            device.phase == "silence" and now_s >= device.silent_until_s - _SAME_S
        ):
            go_on(device, now_s)
    for device in devices:
        if device.phase not in ("over", "lost"):
            hold(device, now_s, cells)
            due = [other for other, held_s in device.held.items() if held_s + cells.trigger_s <= now_s + _SAME_S]
            if due:
                gains = gain_db(device, now_s)
                hand_over(cells, devices, device, max(due, key=lambda other: gains[other]), now_s)


def hold(device: Device, now_s: float, cells: Cells) -> None:
    """Bring the instants up to date from which on each neighbour has been stronger."""
    gains = gain_db(device, now_s)
    own_db = gains[device.station]
    for other, other_db in enumerate(gains):
        if other != device.station and other_db - cells.hysteresis_db > own_db:
            device.held.setdefault(other, now_s)
        else:
            device.held.pop(other, None)


def go_on(device: Device, now_s: float) -> None:
    """The next thing of a device that has computed: silence, a wait for bandwidth, or its upload."""
    if now_s < device.silent_until_s - _SAME_S:
        device.phase = "silence"
    elif device.queued_s is not None:
        device.phase = "queue"
    else:
        device.phase, device.since_s, device.has_begun, device.sent_bits = "upload", now_s, True, 0.0


def hand_over(cells: Cells, devices: list[Device], device: Device, to: int, now_s: float) -> None:
    left, sends = device.station, device.phase in ("upload", "silence", "queue")
    device.handovers.append((now_s, left, to, device.phase))
    if sends and cells.upload == "lost" and device.has_begun:
        if device.phase == "upload":
            log(device, now_s, "dropped")
        device.phase = "lost"
        serve(cells, devices, left, now_s)
        return
    if device.phase == "upload":
        log(device, now_s, "dropped" if cells.upload == "restart" else "paused")
    if cells.upload == "restart":
        device.left_bits = cells.bits
    device.station, device.held, device.silent_until_s = to, {}, now_s + cells.interruption_s
    hold(device, now_s, cells)
    if not cells.is_reshared:
        device.reserved_hz, device.granted_hz = device.granted_hz or device.reserved_hz, 0.0
        device.queued_s = now_s
    if sends:
        device.phase = "silence"
    serve(cells, devices, left, now_s)
    serve(cells, devices, to, now_s)
    if sends:
        go_on(device, now_s)


def serve(cells: Cells, devices: list[Device], station: int, now_s: float) -> None:
    """Give what is free of a cell's band to those that wait there."""
    if cells.is_reshared:
        return
    there = [one for one in devices if one.station == station and one.phase not in ("over", "lost")]
    free_hz = cells.band_hz - sum(one.granted_hz for one in there)
    waiting = [one for one in there if one.queued_s is not None]
    for device in sorted(waiting, key=lambda one: (one.queued_s, one.number)):
        if free_hz <= 1e-9 * cells.band_hz:
            return
        begins_s = max(now_s, device.silent_until_s, cells.compute_s if device.phase == "compute" else now_s)
        wanted = least_hz(device.left_bits, cells.due_s - begins_s, gain_db(device, now_s)[station])
        device.granted_hz = min(wanted if math.isfinite(wanted) else device.reserved_hz, free_hz)
        device.queued_s = None
        free_hz -= device.granted_hz
        if device.phase == "queue":
            go_on(device, now_s)


def log(device: Device, now_s: float, outcome: str) -> None:
    if now_s > device.since_s + _SAME_S:
        device.uploads.append((device.since_s, now_s, device.sent_bits, outcome))
