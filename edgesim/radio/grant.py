"""Uploads that the server has granted, written down when the band is shared."""

from dataclasses import dataclass


# Not frozen, which takes four times as long to make.
@dataclass(slots=True, eq=False)
class Grant:
    """What the upload of one device was granted; changed only where its size is decided as it begins."""

    bandwidth_hz: float
    """Reservation on the station's band; 0 for a device with a link of its own."""
    rx_power_w: float
    """Received power during the upload, in W."""
    bits: float
    """Bits that the device sends."""
    setting: int = 0
    """Setting of the codec for the numbers that are charged; 0 where it is that of the options."""
    written_bits: int = 0
    """Bits of the message itself, where they depend on its values and are known."""
    over_plan_bits: float = 0.0
    """How many bits more than planned it takes, where that depends on its values."""
