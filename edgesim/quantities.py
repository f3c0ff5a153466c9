"""Numbers of configs with the largest value that means something, where plug-ins import them from."""

from edgesim.base.quantities import (
    Bits,
    BitsPerSecond,
    Count,
    Factor,
    Hertz,
    Joules,
    Metres,
    MetresPerSecond,
    Seconds,
    Watts,
)

__all__ = [
    "Bits", "BitsPerSecond", "Count", "Factor", "Hertz", "Joules", "Metres", "MetresPerSecond", "Seconds", "Watts",
]  # fmt: skip
