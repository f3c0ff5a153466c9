"""State of a run at the end of a round, for displays and for `on_round`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunProgress:
    """State of a run at the end of a round."""

    round: int
    t_s: float
    """Simulated time, in seconds."""
    accuracy: float | None
    """Test accuracy of the last model tested; None before the first test."""
    bits_up: float
    """Bits that devices sent in the round, like the two below as in ``rounds``."""
    bits_down: float
    energy_j: float
