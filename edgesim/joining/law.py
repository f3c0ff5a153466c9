"""Joining laws: how likely each device that has checked in joins the round."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from edgesim.base.arrays import Floats, Integers
from edgesim.base.needs import Rule
from edgesim.config import Section

Measured = Literal["held_out", "training"]
"""Samples of which a device measures its accuracy: its own ones that it never trains on, or those of the epoch."""


@dataclass(frozen=True, eq=False)
class Fleet:
    """Facts of a run that are known before its first round."""

    s_per_sample: Floats
    """Mean time that each device computes on a sample, [N]."""
    rounds: int
    """T: the rounds of the run, or as many deadlines as fit before its end."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The devices that are asked in a round."""

    ids: Integers
    """Ascending, [n]."""
    round: int
    """Over the whole run, from 1."""
    accuracy: Floats
    """Mean of each device's last three local epochs, or of as many as it had, [n]; nan before the first, and where the
    law does not measure."""


class Law(Section, ABC):
    """A joining law; its fields are the options in ``[joining]``."""

    needs: ClassVar[frozenset[str]] = frozenset({"rounds"})
    """Features that a run must offer (`edgesim.simulation.needs.FEATURES`): without rounds there are no check-ins."""
    rules: ClassVar[tuple[Rule, ...]] = ()
    """Values of other keys that the law's options need or rule out."""

    @property
    def measured(self) -> Measured | None:
        """Samples of which accuracies are measured for the law; None if it looks at no accuracy."""
        return None

    @abstractmethod
    def chances(self, asked: Asked, fleet: Fleet) -> Floats:
        """Probability that each device asked joins the round, [n]."""
