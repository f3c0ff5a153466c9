"""The largest size that the channel carries in the time left; uploads are planned with the smallest one."""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from edgesim.learning.codecs.transmission import charged_bits, largest_setting
from edgesim.learning.sizes.size_rule import Instant, SizeRule


@dataclass(frozen=True)
class FitAtStart(SizeRule):
    """Sizes are decided as uploads begin, on fading and reservation as they are."""

    header_bits: ClassVar[int] = 32
    known: ClassVar[Instant] = "as the upload begins"

    floor: int
    """Setting of the smallest update that is sent, which is late where it does not fit."""

    @property
    @override
    def planned(self) -> int:
        return self.floor

    @override
    def facts(self) -> dict[str, str]:
        return {"update_bits_notice": f"the least that is sent; sizes are decided {self.known}"}

    @override
    def of_room(self, bits: float) -> tuple[int, int]:
        """The greatest setting that takes at most so many bits, not below the floor; raises as `largest_setting`."""
        largest = largest_setting(self.codec, self.d, int(bits))
        return largest if largest[0] >= self.floor else (self.floor, charged_bits(self.codec, self.d, self.floor))


class FitAtPlan(FitAtStart):
    """Sizes are decided as the band is shared, on the gain and the computing that uploads are planned on."""

    known: ClassVar[Instant] = "with the band"
