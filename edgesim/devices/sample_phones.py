"""Speeds and links of the phones that the repository ships: generated, not recorded, the same on every machine.

``python -m edgesim.devices.sample_phones traces/sample-phones.parquet`` writes the file again. Both quantities are
log-normal and independent of each other. Geometric means and spreads (of the natural logarithm) are those of the 100
most available phones of FedScale (Lai et al., ICML 2022) as published with FLOAT (Khan et al., EuroSys 2024): inference
in 60.4 ms per sample (spread 0.88), of which training takes three times (FedScale's rule), links of 6.5 Mbit/s (1.17);
the correlation of the two logarithms is -0.08 there.
"""

import sys
from pathlib import Path

import numpy as np

from edgesim.devices.profile import Profile, write_profile
from edgesim.streams import Streams

DEVICES = 1000

_S_PER_SAMPLE, _SPREAD_OF_SPEED = 3 * 0.0604, 0.88
_LINK_BPS, _SPREAD_OF_LINK = 6.5e6, 1.17


def generated_phones(device_count: int, streams: Streams) -> Profile:
    """Seconds per training sample and uplink rate of ``device_count`` phones. Draws: stream ``phones``."""
    speed, link = streams.normal("phones", np.arange(device_count), count=2).T
    return Profile(_S_PER_SAMPLE * np.exp(_SPREAD_OF_SPEED * speed), _LINK_BPS * np.exp(_SPREAD_OF_LINK * link))


if __name__ == "__main__":
    write_profile(Path(sys.argv[1]), generated_phones(DEVICES, Streams(0)))
