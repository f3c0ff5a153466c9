"""The class mix of the devices over a whole run, known before it."""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.drift.law import When
from edgesim.learning.federation import Federation, make_federation
from edgesim.streams import Streams

MOST_INSTANTS = 400
_LEAST_INSTANTS = 20
_CELLS = 2e8
"""Most devices x classes x instants that are computed, unless the least number of instants needs more."""


@dataclass(frozen=True, eq=False)
class MixOverTime:
    """Class shares at K instants of a run."""

    x: Floats
    """Rounds, or simulated seconds, [K]."""
    in_seconds: bool
    shares: Floats
    """[K, C]."""


def mix_over_time(config: RunConfig, device: int | None = None) -> MixOverTime:
    """The class mix of one device, or of the samples of all, over a run of a complete config.

    Rounds are taken to last to their deadline. Raises `EdgesimError` for a device that the run does not have, and for
    data without classes.
    """
    if device is not None and not 0 <= device < config.devices.count:
        raise EdgesimError(f"device: expected 0 to {config.devices.count - 1} (got {device})")
    if config.data.dataset == "none":
        raise EdgesimError("drift: data.dataset = 'none' has no classes; name a data set")
    federation = make_federation(config, Streams(config.seed))
    frames, drift = len(federation.frames) - 1, federation.drift
    lengths = config.rounds if isinstance(config.rounds, list) else [max(1, config.expected_rounds)] * frames
    ends, rounds = np.cumsum(lengths), sum(lengths)
    cells = config.devices.count * federation.class_count
    count = int(np.clip(_CELLS / cells, _LEAST_INSTANTS, MOST_INSTANTS))
    if drift.in_seconds:
        x = np.linspace(0.0, rounds * config.round.tmax_s, count)
        instants = [When(min(int(t_s / config.round.tmax_s) + 1, rounds), 1, float(t_s)) for t_s in x]
    else:
        x = np.unique(np.linspace(1, rounds, min(count, rounds)).round())
        frame = 1 + np.searchsorted(ends, x)
        instants = [
            When(int(number), int(its), (number - 1) * config.round.tmax_s)
            for number, its in zip(x, frame, strict=True)
        ]
    return MixOverTime(x, drift.in_seconds, np.array([_mix(federation, when, device) for when in instants]))


def _mix(federation: Federation, when: When, device: int | None) -> Floats:
    counts = federation.drift.at(when).class_counts
    held = counts.sum(axis=0) if device is None else counts[device]
    return np.asarray(held / held.sum())
