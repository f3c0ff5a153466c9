"""Numbers of configs and files, each with the largest value that means something; a field adds its least.

Beyond these bounds times, energies and sums would lose their last digits or overflow, and a run would finish on
nonsense instead of saying so.
"""

from typing import Annotated

from pydantic import Field

UNITS = {
    "s": "s",
    "hz": "Hz",
    "mhz": "MHz",
    "bits": "bit",
    "bps": "bit/s",
    "mps": "m/s",
    "w": "W",
    "j": "J",
    "m": "m",
    "dbm": "dBm",
    "db": "dB",
}
"""Units by the last part of a name."""

Seconds = Annotated[float, Field(le=1e10)]
"""Up to 317 years."""
Metres = Annotated[float, Field(le=1e7)]
"""Up to a quarter of the Earth's circumference."""
MetresPerSecond = Annotated[float, Field(le=1e4)]
"""Up to 10 km/s."""
Hertz = Annotated[float, Field(le=1e12)]
"""Up to a terahertz."""
Bits = Annotated[float, Field(le=1e15)]
"""Up to a petabit."""
BitsPerSecond = Annotated[float, Field(le=1e15)]
"""Up to a petabit per second."""
Watts = Annotated[float, Field(le=1e6)]
"""Up to a megawatt."""
Joules = Annotated[float, Field(le=1e12)]
"""Up to a terajoule."""
Count = Annotated[int, Field(le=2**31 - 1)]
"""Devices, samples, rounds, steps: what is counted."""
MOST_DEVICES = 10_000_000
Devices = Annotated[int, Field(le=MOST_DEVICES)]
"""Devices of a run or of a recording."""
Factor = Annotated[float, Field(le=1e6)]
"""Learning rates, exponents, weights: what has no unit."""
