"""Which station serves which device."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Attach = Literal["strongest", "nearest", "least_loaded"]

_MARGIN = 10.0 ** (-6.0 / 10.0)
"""A station counts for the least load when its gain is within 6 dB of the strongest one's."""


def attach(
    how: Attach, gain: NDArray[np.float64], distance_m: NDArray[np.float64], bandwidth_share: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The station of each device, [N].

    ``gain`` (lasting average power gain, linear) and ``distance_m`` have one row per station, [M, N];
    ``bandwidth_share`` has one entry per station, [M].

    ``strongest`` and ``nearest``: the first such station. ``least_loaded``: in the order of their ids, devices join
    the station with the fewest devices per hertz among those within 6 dB of their strongest; the strongest of equals.
    """
    if how == "nearest":
        return np.asarray(np.argmin(distance_m, axis=0))
    strongest = np.asarray(np.argmax(gain, axis=0))
    if how == "strongest":
        return strongest
    station = strongest.copy()
    load = np.zeros(len(gain))
    reachable = gain >= _MARGIN * gain.max(axis=0)
    for device in range(gain.shape[1]):
        choice = np.flatnonzero(reachable[:, device])
        if len(choice) > 1:
            # The last key counts first: the load, then the gain.
            station[device] = choice[np.lexsort((-gain[choice, device], load[choice]))[0]]
        load[station[device]] += 1.0 / bandwidth_share[station[device]]
    return station
