"""Entries in order of importance until all are sent or the deadline comes; the server decodes what it has received."""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from edgesim.learning.codecs.transmission import charged_bits, largest_setting
from edgesim.learning.sizes.size_rule import Instant, SizeRule


@dataclass(frozen=True)
class Stream(SizeRule):
    """As many entries as the codec's options say, or fewer."""

    header_bits: ClassVar[int] = 32
    known: ClassVar[Instant] = "as the upload ends"

    floor: int | None
    """Entries that uploads are planned with; all where it is None."""

    @property
    @override
    def planned(self) -> int:
        return self.all if self.floor is None else min(self.floor, self.all)

    @property
    @override
    def granted(self) -> int:
        return self.all

    @property
    def all(self) -> int:
        """All entries of an update."""
        return self.codec.setting(self.d)

    @override
    def facts(self) -> dict[str, str]:
        whole = charged_bits(self.codec, self.d, self.all)
        return {"update_bits_notice": f"what admission plans with; a stream takes {whole:,} by its deadline, or less"}

    @override
    def of_room(self, bits: float) -> tuple[int, int]:
        """Entries that are received with so many bits, 0 where the first one is not; raises as `largest_setting`."""
        largest = largest_setting(self.codec, self.d, int(bits))
        return largest if largest[0] <= self.all else (self.all, charged_bits(self.codec, self.d, self.all))
