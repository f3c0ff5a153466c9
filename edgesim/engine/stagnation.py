"""FedStg's schedule, SAC 2026: every second round makes a model, and all do while accuracy does not improve.

As its public program has it: the paper's text is less exact.
"""

from dataclasses import dataclass

_ALWAYS_UNTIL, _EVERY, _PATIENCE = 4, 2, 2
"""Up to this round all are due, later one of so many; and all after so many due rounds without a new best accuracy."""


@dataclass
class Stagnation:
    """Decides before a round whether it makes a model, by the accuracies after the rounds before."""

    best: float = 0.0
    every: bool = False
    """Whether all rounds are due until the next best accuracy."""
    stagnant: int = 0
    """Due rounds since the last best accuracy."""
    accuracy: float = 0.0
    """Accuracy of the current model."""

    def is_due(self, round: int) -> bool:
        """Whether a round makes a model, from 1."""
        return round <= _ALWAYS_UNTIL or self.every or round % _EVERY == 0

    def hear(self, round: int, accuracy: float | None) -> None:
        """Record the accuracy after a round, None if the model has not changed; round 0 is before the first."""
        due = self.is_due(round)
        self.accuracy = self.accuracy if accuracy is None else accuracy
        if self.accuracy > self.best:
            self.best, self.every, self.stagnant = self.accuracy, False, 0
        elif due:
            self.stagnant += 1
            self.every = self.every or self.stagnant >= _PATIENCE
