"""FLASH ``state_traces.json``: events of phones' screens, chargers and networks (Yang et al., WWW 2021)."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.device_keys import models_of, texts
from edgesim.base.errors import EdgesimError
from edgesim.traces.intervals import Intervals, joined
from edgesim.traces.readers.results import RecordedAvailability

_HOLDS = {"idle": {"screen": 0, "lock": 1}, "charging": {"charger": 1}, "wifi": {"wifi": 1}}
"""Signals of each condition of availability, with values of which at least one must hold."""
PARTS = tuple(_HOLDS)
"""Conditions of availability: screen off or locked; on the charger; on Wi-Fi."""

Span = tuple[Integers, Floats, Floats]
"""Devices, starts and ends of some periods, [n] each, in s."""

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\t(\S+)")
_LINES = re.compile(rf"^{_LINE.pattern}\s*$", re.MULTILINE)
_PERCENT = re.compile(r"\d+(\.\d+)?%")
_SETS = {
    "screen": {"screen_on": 1, "screen_off": 0},
    "lock": {"screen_lock": 1, "screen_unlock": 0},
    "charger": {"battery_charged_on": 1, "battery_charged_off": 0},
    "wifi": {"wifi": 1} | dict.fromkeys(("2G", "3G", "4G", "5G", "Unknown"), 0),
}
"""Value of each signal after an event, by the event's name."""
_KNOWN = {*chain(*_SETS.values()), "battery_low", "battery_okay", "phone_on", "phone_off"}
_DAY_S = 86_400
_YEAR_S = 366 * _DAY_S


def read_flash(path: Path, require: Sequence[str] = PARTS) -> RecordedAvailability:
    """Read FLASH's events: a device is available while all the required `PARTS` hold; devices by ascending key.

    A state holds until its next event; events of one second are applied together. Times count from the midnight before
    the first event of the file to the midnight after the last one. A device is observed from the instant at which every
    required part has had an event until the device's last event. Raises `EdgesimError` that names the file, the device,
    the line of its messages and what was expected.
    """
    unknown = [part for part in require if part not in PARTS]
    if unknown or not require:
        raise EdgesimError(f"require: expected some of {', '.join(PARTS)} (got {', '.join(unknown) or 'nothing'})")
    devices = _devices(path)
    keys = sorted(devices, key=int)
    logs = [_events(path, key, devices[key]) for key in keys]
    instants_s = [when_s for when_s, _ in logs if len(when_s)]
    if not instants_s:
        raise EdgesimError(f"{path}: holds no events, so no device would ever be available")
    _refuse_a_span_above_a_year(path, keys, logs)
    zero_s = min(int(when_s[0]) for when_s in instants_s) // _DAY_S * _DAY_S
    length_s = -(-(max(int(when_s[-1]) for when_s in instants_s) - zero_s) // _DAY_S) * _DAY_S or _DAY_S
    available: list[Span] = []
    observed: list[Span] = []
    for number, (when_s, events) in enumerate(logs):
        since_s = (when_s - zero_s).astype(np.float64)
        holds, heard = (rows[:-1] for rows in _rule(events, require))
        for spans, rows in ((available, holds & heard), (observed, heard)):
            spans.append((np.full(np.count_nonzero(rows), number), since_s[:-1][rows], since_s[1:][rows]))

    def whole(spans: list[Span]) -> Intervals:
        device, start_s, end_s = (np.concatenate(column) for column in zip(*spans, strict=True))
        return joined(device, start_s, end_s, length_s, len(logs), str(path))

    seen = whole(observed)
    if not len(seen.device):
        raise EdgesimError(
            f"{path}: expected a device with an event of each of {', '.join(require)} before its last event; require "
            "fewer parts"
        )
    models = models_of(devices[key].get("model") for key in keys)
    return RecordedAvailability(replace(whole(available), keys=texts(keys), models=models), seen)


def _refuse_a_span_above_a_year(path: Path, keys: list[str], logs: Sequence[tuple[Integers, Any]]) -> None:
    """Raises `EdgesimError` if events are more than a year apart, which shows that a device's clock was set wrong."""
    spans = [(int(when_s[0]), int(when_s[-1]), key) for key, (when_s, _) in zip(keys, logs, strict=True) if len(when_s)]
    first_s, _, first_key = min(spans)
    _, last_s, last_key = max(spans, key=lambda span: span[1])
    if last_s - first_s > _YEAR_S:
        first, last = np.array([first_s, last_s], dtype="datetime64[s]").tolist()
        raise EdgesimError(
            f"{path}: messages: expected events within a year of each other (got {first} of device {first_key!r} and "
            f"{last} of device {last_key!r})"
        )


def _devices(path: Path) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise EdgesimError(f"{path}: expected each key once (got {twice!r} twice)")
        return values

    try:
        with path.open(encoding="utf-8") as file:
            devices = json.load(file, object_pairs_hook=once)
    except (OSError, ValueError, RecursionError) as error:
        raise EdgesimError(f"{path}: not a readable JSON file: {str(error).splitlines()[0]}") from None
    if not isinstance(devices, dict) or not devices or not all(key.isdecimal() and len(key) < 20 for key in devices):
        raise EdgesimError(f'{path}: expected an object of devices with the keys "0", "1", ...')
    return devices


def _events(path: Path, key: str, device: Any) -> tuple[Integers, "pd.Series[str]"]:
    """Instants (s since 1970) and names of a device's events, [n], in order."""
    messages = device.get("messages") if isinstance(device, dict) else None
    if isinstance(messages, list) and all(isinstance(line, str) for line in messages):
        messages = "\n".join(messages)
    if not isinstance(messages, str):
        raise EdgesimError(f"{path}: device {key!r}: messages: expected text, one event a line")
    matches = _LINES.findall(messages)
    lines = [(number, line) for number, line in enumerate(messages.split("\n"), 1) if line.strip()]

    def refuse(index: int, expected: str) -> EdgesimError:
        number, line = lines[index]
        return EdgesimError(f"{path}: device {key!r}: messages, line {number}: expected {expected} (got {line!r})")

    if len(matches) < len(lines):
        bad = next(index for index, (_, line) in enumerate(lines) if not _LINE.fullmatch(line.rstrip()))
        raise refuse(bad, "YYYY-MM-DD HH:MM:SS, a tab and an event")
    stamps, events = ([stamp for stamp, _ in matches], [event for _, event in matches])
    try:
        when_s = np.array(stamps, dtype="datetime64[s]").astype(np.int64)
    except ValueError:
        raise refuse(next(i for i, stamp in enumerate(stamps) if not _is_time(stamp)), "a time that exists") from None
    strange = [event for event in dict.fromkeys(events) if event not in _KNOWN and not _PERCENT.fullmatch(event)]
    if strange:
        raise refuse(events.index(strange[0]), f"one of the events {', '.join(sorted(_KNOWN))} or a percentage")
    back = np.flatnonzero(np.diff(when_s) < 0)
    if len(back):
        raise refuse(int(back[0]) + 1, "the events in order of time")
    return when_s, pd.Series(events, dtype="object")


def _is_time(stamp: str) -> bool:
    try:
        np.datetime64(stamp)
    except ValueError:
        return False
    return True


def _rule(events: "pd.Series[str]", require: Sequence[str]) -> tuple[Booleans, Booleans]:
    """Between each event and the next, [n]: whether all required parts hold, and whether each has had an event."""
    # Not a number before the first event of a signal.
    state = {signal: events.map(values).ffill().to_numpy(np.float64) for signal, values in _SETS.items()}
    needed = [_HOLDS[part].items() for part in require]
    holds = [np.any([state[signal] == value for signal, value in signals], axis=0) for signals in needed]
    heard = [np.any([~np.isnan(state[signal]) for signal, _ in signals], axis=0) for signals in needed]
    return np.all(holds, axis=0), np.all(heard, axis=0)
