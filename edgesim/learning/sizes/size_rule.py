"""The base of rules for the sizes of coded updates."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from edgesim.base.arrays import Floats
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.codecs.transmission import charged_bits

Instant = Literal[
    "before the run",
    "as the round opens",
    "with the set",
    "with the band",
    "by the values",
    "as the upload begins",
    "as the upload ends",
]


@dataclass(frozen=True)
class SizeRule:
    """A rule that says with which setting of a codec each update is sent; it knows no device, round or algorithm."""

    header_bits: ClassVar[int] = 0
    """Bits of an upload that tell the server the setting, where it cannot know."""
    known: ClassVar[Instant] = "before the run"
    """When the setting is known: by the options, by the losses before, by the weights of those taken, by the plan as
    the band is shared, by the values of the update or the channel as it was drawn once the upload begins, or by what
    was received until the deadline."""

    codec: Codec
    d: int
    """Numbers of an update that are charged."""

    @property
    def planned(self) -> int:
        """Setting that uploads are planned with until theirs is known."""
        return self.codec.setting(self.d)

    @property
    def granted(self) -> int:
        """Setting that uploads are granted with until theirs is known."""
        return self.planned

    @property
    def follows_channel(self) -> bool:
        """Whether the setting is the greatest for which there are time and rate."""
        return self.known in ("with the band", "as the upload begins", "as the upload ends")

    def facts(self) -> dict[str, str]:
        """Entries of ``run.json`` about sizes that differ from the planned one."""
        return {}

    def of_room(self, bits: float) -> tuple[int, int]:
        """Setting of an update for which there are so many bits of time and rate, and the bits that it takes."""
        return self.planned, charged_bits(self.codec, self.d, self.planned)

    def of_weights(self, weight: Floats) -> list[int]:
        """Setting of each update of a round by their weights in the mean, [S], whose sum is 1."""
        return [self.planned] * len(weight)

    def hear(self, loss: float) -> None:
        """Hear the mean training loss of a merge."""

    @property
    def state(self) -> list[float]:
        """What it remembers from merge to merge."""
        return []

    def restore(self, state: list[float]) -> None:
        """Restore what it remembered."""
