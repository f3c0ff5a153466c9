"""Rewards of an agent, from the outcomes of its decision."""

from collections.abc import Callable, Sequence

from edgesim.api.episode import Outcome

Reward = Callable[[Sequence[Outcome]], float]
"""Function of the models made since the decision before: in rounds one, and one for each round since in which there was
nobody to choose from; without rounds none or several."""


def arrivals(outcomes: Sequence[Outcome]) -> float:
    """Number of updates that arrived in time."""
    return float(sum(len(outcome.report.arrived) for outcome in outcomes))


def accuracy_per_s(outcomes: Sequence[Outcome]) -> float:
    """Accuracy gained per simulated second of the step; 0 where nothing was tested."""
    return _ratio(outcomes, sum(outcome.lasted_s for outcome in outcomes))


def accuracy_per_j(outcomes: Sequence[Outcome]) -> float:
    """Accuracy gained per joule of the step; 0 where nothing was tested."""
    return _ratio(outcomes, sum(outcome.progress.energy_j for outcome in outcomes))


def _ratio(outcomes: Sequence[Outcome], spent: float) -> float:
    """Accuracy gained from before the first of the models to the last, for what was spent."""
    if not outcomes:
        return 0.0
    before, now = outcomes[0].report.accuracy, outcomes[-1].progress.accuracy
    return 0.0 if before is None or now is None or spent <= 0 else (now - before) / spent


REWARDS: dict[str, Reward] = {
    "arrivals": arrivals,
    "accuracy_per_s": accuracy_per_s,
    "accuracy_per_j": accuracy_per_j,
}
"""Rewards by name."""
