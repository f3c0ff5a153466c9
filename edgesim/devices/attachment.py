"""Attachment of devices to stations."""

from typing import Literal

import numpy as np

from edgesim.base.arrays import Floats, Integers

Attach = Literal["strongest", "nearest", "least_loaded"]

_MARGIN = 10.0 ** (-6.0 / 10.0)
"""``least_loaded`` considers the stations whose gain is at least this share (-6 dB) of the strongest one's."""


def attach(how: Attach, gain: Floats, distance_m: Floats, bandwidth_share: Floats) -> Integers:
    """The station of each device, [N].

    ``gain`` (the linear power gain that no draw of a round changes) and ``distance_m`` have one row per station,
    [M, N]; ``bandwidth_share`` has one entry per station, [M].

    ``strongest`` and ``nearest``: the first such station. ``least_loaded``: in the order of their ids, devices join
    the station with the fewest devices per hertz among those within 6 dB of their strongest; of equally loaded ones
    the strongest.
    """
    if how == "nearest":
        return np.asarray(np.argmin(distance_m, axis=0))
    strongest = np.asarray(np.argmax(gain, axis=0))
    if how == "strongest":
        return strongest
    by_gain = np.argsort(-gain, axis=0, kind="stable")
    reachable = np.count_nonzero(gain >= _MARGIN * gain.max(axis=0), axis=0)
    per_device = (1.0 / bandwidth_share).tolist()
    load = [0.0] * len(gain)
    station: list[int] = []
    for choice, count in zip(by_gain.T.tolist(), reachable.tolist(), strict=True):
        own = min(choice[:count], key=load.__getitem__)
        load[own] += per_device[own]
        station.append(own)
    return np.array(station, dtype=np.int64)
