"""Where a round, or the making of a model, stands in the run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RoundNumber:
    """Where a round stands in the run."""

    round: int
    """Over the whole run, from 1."""
    frame: int
    round_in_frame: int
    rounds_in_frame: int
    """FedTeddi's K_l: the configured rounds, or floor(stop_at_s / tmax_s) when only the time is given."""
    last_of_frame: bool


def moved_deadline_s(a: float, length_s: float, average_s: float) -> float:
    """The next deadline, D_next = (1 - a) D_round + a D_avg, which is also the next average (REFL, section 4.1)."""
    return (1.0 - a) * length_s + a * average_s
