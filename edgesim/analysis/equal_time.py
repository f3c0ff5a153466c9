"""Whether runs that are compared by seconds had equal time."""

from collections.abc import Sequence

from edgesim.analysis.metrics import simulated_s
from edgesim.analysis.runs import Run


def unequal_time(runs: Sequence[Run]) -> list[str]:
    """A note where runs of fixed rounds have different deadlines, and so end at different seconds; empty otherwise.

    A run with a short deadline may end before it reaches a target that it would reach first.
    """
    ends_s: dict[float, float] = {}
    for run in runs:
        if "stop_at_s" not in run.config:
            tmax_s = float(run.config["round"]["tmax_s"])
            ends_s[tmax_s] = max(ends_s.get(tmax_s, 0.0), simulated_s(run.rounds))
    if len(ends_s) < 2:
        return []
    short, long = min(ends_s), max(ends_s)
    return [
        f"Seconds are compared over different deadlines at fixed rounds: runs with a Tmax of {short:g} s end by "
        f"{ends_s[short]:.4g} s, those with {long:g} s by {ends_s[long]:.4g} s. One that ends before it reaches the "
        "target may still be the sooner; give all runs the same stop_at_s."
    ]
