"""Observation of a decision: what an agent sees of every device, scaled to numbers from 0 to 1."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgesim.base.arrays import Floats, Integers, Singles
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import did_you_mean
from edgesim.selection.view import RoundReport, RoundView

_GAIN_DB = -160.0, -40.0
"""Gains that are scaled to 0 and 1; others count as the nearer of the two."""
_NEED_HZ = 1e4, 1e8
"""Least bandwidths that are scaled to 0 and 1, on a logarithmic scale like that of gains."""
_MIDDLE_AGE = 10.0
"""Age, in rounds, that is scaled to one half."""


@dataclass
class Ages:
    """Memory of the rounds in which devices were last scheduled."""

    last: Integers
    """Number of that round, 0 for devices that never were, [devices]."""

    def hear(self, report: RoundReport) -> None:
        """Note the devices that a round scheduled."""
        self.last[report.selected] = report.round


@dataclass(frozen=True)
class Observation:
    """Observation of a decision, with a row for each device of the run; rows of devices that cannot be taken are 0."""

    devices: Singles
    """Features of each device, [N, F]."""
    candidates: NDArray[np.int8]
    """1 for each candidate, else 0, [N]."""
    time: Singles
    """Share of the rounds of the frame that is over, [1]: of the run's where it has one frame."""


def _gain(view: RoundView, ages: Ages) -> Floats:
    least_db, most_db = _GAIN_DB
    gain_db = 10.0 * np.log10(np.maximum(np.asarray(view.gain), 1e-30))
    return np.asarray((gain_db - least_db) / (most_db - least_db))


def _delay(view: RoundView, ages: Ages) -> Floats:
    return np.asarray(view.delay_s) / view.tmax_s


def _need(view: RoundView, ages: Ages) -> Floats:
    least_hz, most_hz = _NEED_HZ
    need_hz = np.clip(np.asarray(view.need_hz), least_hz, most_hz)
    return np.asarray(np.log(need_hz / least_hz) / np.log(most_hz / least_hz))


def _samples(view: RoundView, ages: Ages) -> Floats:
    return np.asarray(view.samples / max(1, view.samples.max(initial=0)))


def _age(view: RoundView, ages: Ages) -> Floats:
    age = np.maximum(view.round - ages.last[view.ids], 0)
    return np.asarray(age / (age + _MIDDLE_AGE))


def _loss(view: RoundView, ages: Ages) -> Floats:
    loss = view.knowledge.losses(view.ids)
    return np.asarray(loss / (loss + 1.0))


FEATURES: dict[str, Callable[[RoundView, Ages], Floats]] = {
    "gain": _gain,
    "delay": _delay,
    "need": _need,
    "samples": _samples,
    "age": _age,
    "loss": _loss,
}
"""Functions of the features of the candidates, [n], which are clipped to the range from 0 to 1.

``gain``: average gain, -160 to -40 dB. ``delay``: compute delay over the deadline. ``need``: least bandwidth, 10
kHz to 100 MHz on a logarithmic scale. ``samples``: size of the data set over the largest of the candidates. ``age``:
rounds since the device was last scheduled, a / (a + 10). ``loss``: loss of the global model on the device's data,
l / (l + 1), which takes a pass over the data.
"""

DEFAULT = ("gain", "delay", "need", "samples", "age")
"""Features that cost no pass over data."""

LOOKS_AT = {"loss": "losses"}
"""What features look at beyond the view's arrays, as a policy's ``looks_at``."""


def checked_features(features: Sequence[str], where: str) -> tuple[str, ...]:
    """Names of features; raises `EdgesimError`, whose message begins with ``where``, for unknown and repeated ones."""
    if isinstance(features, str) or not isinstance(features, Sequence):
        raise EdgesimError(f"{where}: expected a list of names (got {features!r})")
    for name in features:
        if not isinstance(name, str):
            raise EdgesimError(f"{where}: expected names (got {name!r})")
        if name not in FEATURES:
            hint = did_you_mean(name, FEATURES) or ";"
            raise EdgesimError(f"{where}: unknown feature {name!r}{hint} known: {', '.join(FEATURES)}")
    if not features or len(set(features)) < len(features):
        raise EdgesimError(f"{where}: expected different features, at least one (got {', '.join(features)})")
    return tuple(features)


def looks_at(features: Sequence[str]) -> frozenset[str]:
    """What features look at beyond the view's arrays."""
    return frozenset(LOOKS_AT[name] for name in features if name in LOOKS_AT)


def observe(view: RoundView, features: Sequence[str], ages: Ages) -> Observation:
    """Observe an open decision."""
    count = len(ages.last)
    devices = np.zeros((count, len(features)), dtype=np.float32)
    for column, name in enumerate(features):
        devices[view.ids, column] = np.clip(FEATURES[name](view, ages), 0.0, 1.0)
    candidates = np.zeros(count, dtype=np.int8)
    candidates[view.ids] = 1
    return Observation(devices, candidates, np.array([passed(view)], dtype=np.float32))


def passed(view: RoundView) -> float:
    """Share of the rounds of a frame that are over; 1 where there are more than were planned."""
    return min(1.0, (view.round_in_frame - 1) / view.rounds_in_frame)
