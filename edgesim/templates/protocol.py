"""Enough arrived: a round closes when half of its devices have arrived, or at the deadline, whichever is first."""

import math
from typing import ClassVar

from pydantic import Field

from edgesim.config import RoundConfig, Section
from edgesim.engine.protocols.protocol import Protocol


class EnoughArrivedOptions(Section):
    """Options of the protocol, keys of ``round.protocol_options``."""

    share: float = Field(0.5, gt=0, le=1)
    """Share of the devices taken whose arrivals close a round."""


class EnoughArrived(Protocol):
    """Merges what has arrived by then; the others are late, which ``round.late`` drops or keeps."""

    Options: ClassVar[type[Section]] = EnoughArrivedOptions

    def wanted(self, taken: int, knobs: RoundConfig) -> int:
        """The share of the devices taken, rounded up."""
        share: float = self.options.share
        return math.ceil(share * taken - 1e-9)
