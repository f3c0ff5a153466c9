"""Rounds that close at the last arrival, or at the deadline."""

from typing_extensions import override

from edgesim.config import RoundConfig
from edgesim.engine.protocols.protocol import Protocol


class Synchronous(Protocol):
    """Closes a round at the last arrival or, with ``round.over_commitment``, at the ``count``-th (FedScale)."""

    @override
    def wanted(self, taken: int, knobs: RoundConfig) -> int | None:
        if knobs.close == "deadline":
            return None
        return taken if knobs.over_commitment == 1 else min(taken, knobs.count or 0)
