"""A run as a Perfetto trace (TrackEvent): a track per device, one of the rounds, and the band in use as a counter."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgesim.analysis.band_use import use_by_station
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Integers
from edgesim.base.on_disk import in_place_of
from edgesim.base.optional import needed
from edgesim.base.paths import system_errors

_SEQUENCE = 1
_ROUNDS, _STATIONS, _DEVICES = 1, 2**20, 2**32
"""Numbers of tracks: of the rounds, and from which on those of stations and of devices begin."""
_LANES = 2**8
"""Tracks that one device may have."""
NS_PER_S = 1e9


def write_perfetto(run: RunFolder, path: Path) -> None:
    """Write the trace; a row of ``activities`` is a slice, named by its activity and in the category of its outcome.

    Work of a device that overlaps lies on a further track of the device, since slices of a track must lie in one
    another. Raises `EdgesimError` if the wheel ``perfetto`` is not installed, or the file cannot be written.
    """
    builders = needed("perfetto.trace_builder.proto_builder", "perfetto")
    events = needed("perfetto.protos.perfetto.trace.perfetto_trace_pb2", "perfetto").TrackEvent
    rounds, activities = run.rounds.sort_values("round"), run.activities
    with (
        system_errors(f"perfetto {path}: cannot be written", "; choose another file"),
        in_place_of(path) as part,
        part.open("wb") as file,
    ):
        trace = _Trace(builders.StreamingTraceProtoBuilder(file), events)
        _write_rounds(trace, rounds)
        _write_bands(trace, run)
        _write_devices(trace, activities)


class _Trace:
    """A trace that is being written."""

    def __init__(self, builder: Any, events: Any) -> None:
        self._builder, self._events = builder, events

    def track(self, number: int, name: str, parent: int = 0, unit: str = "") -> None:
        """Describe a track; one with a unit is a counter."""
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        track = packet.track_descriptor
        track.uuid, track.name = number, name
        if parent:
            track.parent_uuid = parent
        if unit:
            track.counter.unit_name = unit
        self._builder.write_packet(packet)

    def slice(self, number: int, name: str, category: str, span_ns: tuple[int, int], facts: Iterable[Any]) -> None:
        """A slice of a track with its facts: pairs of a name and a text, a whole number or a number."""
        event = self._event(number, span_ns[0], self._events.TYPE_SLICE_BEGIN)
        event.track_event.name = name
        event.track_event.categories.append(category)
        for fact, value in facts:
            note = event.track_event.debug_annotations.add()
            note.name = fact
            setattr(note, "int_value" if isinstance(value, int) else "double_value", value)
        self._builder.write_packet(event)
        self._builder.write_packet(self._event(number, span_ns[1], self._events.TYPE_SLICE_END))

    def count(self, number: int, at_ns: int, value: float) -> None:
        """A value of a counter from an instant on."""
        event = self._event(number, at_ns, self._events.TYPE_COUNTER)
        event.track_event.double_counter_value = value
        self._builder.write_packet(event)

    def _event(self, number: int, at_ns: int, kind: int) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.timestamp = at_ns
        packet.track_event.type = kind
        packet.track_event.track_uuid = number
        return packet


def _write_rounds(trace: _Trace, rounds: pd.DataFrame) -> None:
    trace.track(_ROUNDS, "rounds")
    counts = ("candidates", "selected", "arrived", "late", "dropped")
    for row in rounds.to_dict("records"):
        facts: list[tuple[str, Any]] = [(name, int(row[name])) for name in counts if pd.notna(row[name])]
        if pd.notna(row["test_accuracy"]):
            facts.append(("test_accuracy", float(row["test_accuracy"])))
        span_ns = (_ns(row["t_start_s"]), _ns(row["t_end_s"]))
        trace.slice(_ROUNDS, f"round {row['round']}", "round", span_ns, facts)


def _write_bands(trace: _Trace, run: RunFolder) -> None:
    """The share of each station's band in use."""
    for station, use in use_by_station(run):
        number = _STATIONS + int(station.station)
        trace.track(number, f"band in use, {station.name}", unit="share")
        for t_s, share in zip(use.t_s, use.share, strict=True):
            trace.count(number, _ns(t_s), float(share))


def _write_devices(trace: _Trace, activities: pd.DataFrame) -> None:
    rows = activities.sort_values(["device", "t_start_s", "t_end_s"], kind="stable")
    start_ns, end_ns = (np.rint(rows[name].to_numpy() * NS_PER_S).astype(np.int64) for name in ("t_start_s", "t_end_s"))
    lanes = lanes_of(rows["device"].to_numpy(dtype=np.int64), start_ns, end_ns)
    described: set[int] = set()
    for row, lane, begin, end in zip(rows.itertuples(), lanes, start_ns.tolist(), end_ns.tolist(), strict=True):
        first = _DEVICES + int(row.device) * _LANES
        number = first + int(lane)
        if number not in described:
            described.add(number)
            trace.track(number, f"device {row.device}" + (f" ({lane + 1})" if lane else ""), first if lane else 0)
        facts: list[tuple[str, Any]] = [("round", int(row.round))]
        facts += [
            (name, float(value))
            for name, value in (("bits", row.bits), ("bandwidth_hz", row.bandwidth_hz), ("energy_j", row.energy_j))
            if value == value and value
        ]
        trace.slice(number, str(row.activity), str(row.outcome), (begin, end), facts)


def lanes_of(device: Integers, start: Integers, end: Integers) -> Integers:
    """The lane of each interval, [rows], so that no two of a device's lane overlap; rows by device and start.

    The lanes are as few as can be: each interval lies in the first one that is free.
    """
    lanes = np.zeros(len(device), dtype=np.int64)
    overlapping = (device[1:] == device[:-1]) & (start[1:] < end[:-1])
    free: list[int] = []
    # Only devices with overlapping work need a look at every row.
    several = np.isin(device, device[1:][overlapping])
    last = -1
    for i in np.flatnonzero(several):
        if device[i] != last:
            free, last = [], int(device[i])
        lane = next((place for place, until in enumerate(free) if until <= start[i]), len(free))
        free[lane : lane + 1] = [int(end[i])]
        lanes[i] = lane
    return lanes


def _ns(t_s: float) -> int:
    return round(t_s * NS_PER_S)
