"""The largest size that the channel carries in the time left; uploads are planned with the smallest one."""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from edgesim.base.errors import EdgesimError
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
    def of_room(self, bits: float) -> int:
        """Greatest setting that takes at most so many bits, not below the floor.

        Raises `EdgesimError` for a codec that answers one which takes more.
        """
        setting = self.codec.largest(self.d, int(bits))
        if setting > self.floor and (takes := self.codec.bits(self.d, setting)) > bits:
            raise EdgesimError(
                f"upload.codec: {type(self.codec).__name__}.largest answered {setting} for {int(bits)} bits, with "
                f"which {self.d} numbers take {takes}; expected the greatest setting that fits",
                "upload.codec",
            )
        return max(setting, self.floor)


class FitAtPlan(FitAtStart):
    """Sizes are decided as the band is shared, on the gain and the computing that uploads are planned on."""

    known: ClassVar[Instant] = "with the band"
