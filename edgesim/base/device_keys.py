"""The keys (names) and models that recordings give their devices, and the matching of devices of two recordings."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError

Texts = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class DeviceKeys:
    """The keys of the devices 0, 1, ... of a recording: texts, [n], all different."""

    keys: Texts
    file: str
    """The recording's name in messages."""

    def rows_in(self, other: "DeviceKeys") -> Integers:
        """Row of each device in another recording, [n]; raises `EdgesimError` for the first device not in it."""
        rows = _places(other.keys, self.keys)
        if np.any(rows < 0):
            device = int(np.argmax(rows < 0))
            raise EdgesimError(
                f"{other.file}: has no device {self.keys[device]!r} (device {device} of the run, from {self.file}); "
                "give recordings of the same devices, or, to take row k for device k whatever its key, set "
                'devices.match = "position"',
                "devices.match",
            )
        return rows

    def first(self, count: int) -> "DeviceKeys":
        """The devices 0 to ``count`` - 1 alone."""
        return DeviceKeys(self.keys[:count], self.file)


def need_devices(file: str, kind: str, has: int, count: int, what: str = "devices") -> None:
    """Raise `EdgesimError` for a recording, a ``kind`` in messages, that has fewer devices (``what``) than the run."""
    if has < count:
        raise EdgesimError(
            f"{file}: is a {kind} of {has} {what}, but devices.count is {count}; lower devices.count or give a {kind} "
            f"of more {what}",
            "devices.count",
        )


def _places(keys: Texts, wanted: Texts) -> Integers:
    """Position in ``keys`` of each of ``wanted``, [n]; -1 for one that ``keys`` lacks."""
    return np.asarray(pd.Index(keys, dtype=object).get_indexer(wanted), dtype=np.int64)


def numbered(keys: Texts, others: Texts) -> tuple[Integers, Texts]:
    """Device number of each of ``others`` [m], and the keys of all devices.

    A key in ``keys`` keeps its position there; new keys are numbered after them and appended.
    """
    number = _places(keys, others)
    new = number < 0
    number[new] = len(keys) + np.arange(np.count_nonzero(new))
    return number, np.append(keys, others[new])


def models_of_all(models: Texts | None, count: int) -> Texts | None:
    """The models extended to ``count`` devices; the added devices have an empty model."""
    return None if models is None else np.append(models, texts([""] * (count - len(models))))


def texts(values: Iterable[str]) -> Texts:
    """Texts as an array, [n]."""
    return np.array(list(values), dtype=object)


def models_of(values: Iterable[object]) -> Texts | None:
    """Models of the devices of a recording, [n], empty for a device without one; None if no device has one."""
    # Lone surrogates, which UTF-8 cannot encode, are replaced.
    models = [value.strip().encode(errors="replace").decode() if isinstance(value, str) else "" for value in values]
    return texts(models) if any(models) else None


def models_in_short(models: Texts) -> str:
    """Summary of models, for messages: their number, and the three most frequent with their numbers of devices."""
    counts = Counter(models.tolist())
    without = counts.pop("", 0)
    # Equally frequent models are ordered by name.
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
    frequent = ", ".join(f"{name} ({count:,})" for name, count in most)
    return f"{len(counts):,} models, most often {frequent}" + (f"; unknown for {without:,}" if without else "")
