"""FedScale's pickles: ``client_behave_trace`` (availability) and ``client_device_capacity`` (speed and link rate).

Lai et al., "FedScale: Benchmarking Model and System Performance of Federated Learning at Scale", ICML 2022.
"""

import reprlib
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers, ranks
from edgesim.base.device_keys import Texts, models_of, texts
from edgesim.base.errors import EdgesimError
from edgesim.base.memory import check_fits
from edgesim.base.table_facts import LONGEST_S
from edgesim.base.unpickle import read_plain
from edgesim.devices.profile import Profile
from edgesim.traces.intervals import joined
from edgesim.traces.readers.results import Recorded, RecordedAvailability

TRAINING_PER_INFERENCE = 3.0
"""FedScale's own rule: a training step takes three times as long as inference."""

_SHORT = reprlib.Repr()
"""The whole of a list of lists that are one another many times over could not be printed."""
_SHORT.maxlong = _SHORT.maxstring = _SHORT.maxother = 130

_BYTES_PER_PERIOD = 64
"""Memory that reading takes for each period, in bytes."""


def read_fedscale(path: Path) -> Recorded:
    """Read either of the two files; devices come in ascending order of FedScale's keys, which are kept.

    Raises `EdgesimError` that names the file, the device, the field and what was expected.
    """
    clients = read_plain(path)
    if not isinstance(clients, dict) or not clients or not all(_is_key(key) for key in clients):
        raise EdgesimError(f"{path}: expected a dict of clients with whole numbers of at most 64 bits as keys")
    keys = sorted(clients)
    records = [clients[key] for key in keys]
    if not isinstance(records[0], dict) or not ("active" in records[0] or "computation" in records[0]):
        raise EdgesimError(f"{path}: client {keys[0]}: expected a dict with active and inactive, or with computation")
    if "active" in records[0]:
        return _behaviour(path, keys, records)
    return _capacity(path, keys, records)


def _is_key(key: Any) -> bool:
    return isinstance(key, int | np.integer) and -(2**63) <= int(key) < 2**63


def _refuse(path: Path, client: int, field: str, expected: str) -> NoReturn:
    raise EdgesimError(f"{path}: client {client}: {field}: expected {expected}")


def _texts(keys: list[int]) -> Texts:
    return texts(str(int(key)) for key in keys)


def _number(value: Any) -> float:
    """A value as a float; nan if it is not a number, inf if it is too large for a float."""
    try:
        return float(value) if isinstance(value, int | float | np.integer | np.floating) else np.nan
    except OverflowError:
        return np.inf


def _shown(value: Any) -> str:
    """The beginning of a value, for messages."""
    try:
        return f"{_SHORT.repr(value):.60}"
    except ValueError:
        # Python refuses to print integers of more than 4,300 digits.
        return "an integer too long to print"


def _column(path: Path, keys: list[int], records: list[Any], field: str) -> Floats:
    """A field of every client's record, [n], checked to be a finite number above 0."""
    values = [record.get(field) if isinstance(record, dict) else None for record in records]
    numbers = np.array([_number(value) for value in values])
    bad = ~(np.isfinite(numbers) & (numbers > 0))
    if bad.any():
        row = int(np.argmax(bad))
        _refuse(path, keys[row], field, f"a finite number above 0 (got {_shown(values[row])})")
    return numbers


def _capacity(path: Path, keys: list[int], records: list[Any]) -> Profile:
    inference_ms = _column(path, keys, records, "computation")
    link_kbps = _column(path, keys, records, "communication")
    return Profile(TRAINING_PER_INFERENCE * inference_ms / 1e3, 1e3 * link_kbps, keys=_texts(keys))


def _behaviour(path: Path, keys: list[int], records: list[Any]) -> RecordedAvailability:
    lengths_s = _column(path, keys, records, "finish_time")
    if np.any(lengths_s > LONGEST_S):
        row = int(np.argmax(lengths_s))
        _refuse(path, keys[row], "finish_time", f"at most {LONGEST_S:g} s (got {lengths_s[row]:g})")
    lists: dict[str, list[list[Any]]] = {}
    for field in ("active", "inactive"):
        lists[field] = [record.get(field) for record in records]
        bad = next((row for row, instants in enumerate(lists[field]) if not isinstance(instants, list | tuple)), None)
        if bad is not None:
            _refuse(path, keys[bad], field, "a list of seconds")
    counts = np.array([len(instants) for instants in lists["active"]])
    short = counts != np.array([len(instants) for instants in lists["inactive"]])
    if short.any():
        row = int(np.argmax(short))
        _refuse(path, keys[row], "inactive", f"as many instants as active has, {counts[row]}")
    # One list may be that of many clients.
    check_fits(int(counts.sum()) * _BYTES_PER_PERIOD, f"{path}: active")
    device = np.repeat(np.arange(len(keys)), counts)
    start_s, end_s = (_flat(path, keys, lists[field], device, field) for field in ("active", "inactive"))
    place = ranks(counts)

    def check(bad: Booleans, field: str, values: Floats, expected: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            _refuse(path, keys[device[row]], f"{field}[{place[row]}]", f"{expected} (got {values[row]:g})")

    before_s = np.where(place > 0, np.roll(end_s, 1), 0.0)
    check(~np.isfinite(start_s) | (start_s < 0), "active", start_s, "finite seconds, 0 or more")
    check(~np.isfinite(end_s) | (end_s < start_s), "inactive", end_s, "an instant not before active at the same place")
    check(start_s < before_s, "active", start_s, "an instant not before the end of the previous period")
    # FedScale repeats the recording at finish_time, so periods after it never occur; empty periods are dropped.
    cut = int(np.count_nonzero((end_s > lengths_s[device]) & (end_s > start_s)))
    available = joined(device, start_s, end_s, lengths_s, len(keys), str(path))
    models = models_of(record.get("model") for record in records)
    return RecordedAvailability(replace(available, keys=_texts(keys), models=models), cut=cut)


def _flat(path: Path, keys: list[int], lists: list[list[Any]], device: Integers, field: str) -> Floats:
    """All lists concatenated, as numbers."""
    try:
        return np.fromiter(chain.from_iterable(lists), np.float64, len(device))
    except (TypeError, ValueError, OverflowError):
        values = list(chain.from_iterable(lists))
        row = next(row for row, value in enumerate(values) if not np.isfinite(_number(value)))
        _refuse(path, keys[device[row]], field, f"seconds (got {_shown(values[row])})")
