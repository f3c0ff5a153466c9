"""The capacity table that the repository ships: generated, not recorded, and the same on every machine.

``python -m edgesim.radio.capacity_sample > channels/recorded-capacity.csv`` writes it again.
"""

import numpy as np

from edgesim.streams import Streams

ROWS = 600
_MEDIAN_BPS, _LOG_STD, _CORRELATION = 20e6, 0.5, 0.95
_OUTAGES_S = ((150, 155), (420, 428))


def sample_capacity_csv() -> str:
    """Ten minutes of one cell's uplink, a row per second, as the text of a CSV with the columns t_s, bps.

    The logarithm of the capacity is an AR(1) process of lag-one correlation 0.95 around a median of 20 Mbit/s
    with standard deviation 0.5, rounded to kbit/s; two gaps of 5 and 8 s carry nothing, as in a handover.
    Draws: stream ``capacity-sample`` of seed 0, indexed by the second.
    """
    draws = Streams(0).normal("capacity-sample", np.arange(ROWS))
    log_ratio = np.empty(ROWS)
    log_ratio[0] = _LOG_STD * draws[0]
    for second in range(1, ROWS):
        fresh = _LOG_STD * np.sqrt(1.0 - _CORRELATION**2) * draws[second]
        log_ratio[second] = _CORRELATION * log_ratio[second - 1] + fresh
    bps = 1000 * np.rint(_MEDIAN_BPS * np.exp(log_ratio) / 1000).astype(np.int64)
    for first, last in _OUTAGES_S:
        bps[first:last] = 0
    return "t_s,bps\n" + "".join(f"{second},{value}\n" for second, value in enumerate(bps))


if __name__ == "__main__":
    print(sample_capacity_csv(), end="")
