"""What recordings call their devices, of which model these are, and which rows of two recordings are one device."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from edgesim.arrays import Integers
from edgesim.errors import EdgesimError

Texts = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class DeviceKeys:
    """What a file calls the devices 0, 1, ...: texts, [n], each once."""

    keys: Texts
    file: str
    """What messages call the recording."""

    def rows_in(self, other: "DeviceKeys") -> Integers:
        """Row of each device in another recording, [n]; raises `EdgesimError` for the first that it does not have."""
        rows = _places(other.keys, self.keys)
        if np.any(rows < 0):
            device = int(np.argmax(rows < 0))
            raise EdgesimError(
                f"{other.file}: has no device {self.keys[device]!r}, which {self.file} has as device {device} of the "
                "run; give recordings of the same devices, or, to take row k for device k whatever it is called, "
                'devices.match = "position"',
                "devices.match",
            )
        return rows

    def first(self, count: int) -> "DeviceKeys":
        """The devices 0 to ``count`` - 1 alone."""
        return DeviceKeys(self.keys[:count], self.file)


def _places(keys: Texts, wanted: Texts) -> Integers:
    """Place of each of ``wanted`` among ``keys``, [n]; -1 where it is not there."""
    return np.asarray(pd.Index(keys, dtype=object).get_indexer(wanted), dtype=np.int64)


def numbered(keys: Texts, others: Texts) -> tuple[Integers, Texts]:
    """Numbers that ``others`` [m] have among devices called ``keys``, new ones behind them; and the keys of all."""
    number = _places(keys, others)
    new = number < 0
    number[new] = len(keys) + np.arange(np.count_nonzero(new))
    return number, np.append(keys, others[new])


def models_of_all(models: Texts | None, count: int) -> Texts | None:
    """Models of ``count`` devices, of which those behind the known ones have none."""
    return None if models is None else np.append(models, texts([""] * (count - len(models))))


def texts(values: Iterable[str]) -> Texts:
    """Texts as an array, [n]."""
    return np.array(list(values), dtype=object)


def models_of(values: Iterable[object]) -> Texts | None:
    """Models as a recording has them, [n], empty for a device without; None where no device has one."""
    # What no file can hold as text is replaced.
    found = [value.strip().encode(errors="replace").decode() if isinstance(value, str) else "" for value in values]
    return texts(found) if any(found) else None


def models_in_short(models: Texts) -> str:
    """How many models there are, and the three most frequent with their numbers of devices."""
    counts = Counter(models.tolist())
    without = counts.pop("", 0)
    # Of equally frequent ones, the first by name.
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:3]
    told = ", ".join(f"{name} ({count:,})" for name, count in most)
    return f"{len(counts):,} models, most often {told}" + (f"; not known of {without:,}" if without else "")
