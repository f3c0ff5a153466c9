"""The base of rules for the sizes of coded updates."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from edgesim.learning.codecs.codec import Codec

Instant = Literal["before the run", "with the band", "as the upload begins"]


@dataclass(frozen=True)
class SizeRule:
    """A rule that says with which setting of a codec each update is sent; it knows no device, round or algorithm."""

    header_bits: ClassVar[int] = 0
    """Bits of an upload that tell the server the setting, where it cannot know."""
    known: ClassVar[Instant] = "before the run"
    """When the setting is known: by the options, by the plan as the band is shared, or by the channel as it was drawn.
    """

    codec: Codec
    d: int
    """Numbers of an update that are charged."""

    @property
    def planned(self) -> int:
        """Setting that uploads are planned with until theirs is known."""
        return self.codec.setting(self.d)

    def facts(self) -> dict[str, str]:
        """Entries of ``run.json`` about sizes that differ from the planned one."""
        return {}

    def of_room(self, bits: float) -> int:
        """Setting of an update for which there are so many bits of time and rate."""
        return self.planned
