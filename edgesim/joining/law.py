"""What a joining law is: how likely each device that has checked in joins the round."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.needs import Rule, refuse_old
from edgesim.config import Section

Measured = Literal["held_out", "training"]
"""What a device's accuracy after an epoch is of: samples of its own that it never trains on, or those of the epoch."""


@dataclass(frozen=True, eq=False)
class Fleet:
    """What is known of a run before its first round."""

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
    """What a run must offer, by the names of `edgesim.simulation.needs.FEATURES`: there are no check-ins otherwise."""
    rules: ClassVar[tuple[Rule, ...]] = ()
    """What its options need of other keys, or rule out."""

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        refuse_old(cls, "check")

    @property
    def measured(self) -> Measured | None:
        """What the accuracies are of by which it goes; None if it goes by none."""
        return None

    @abstractmethod
    def chances(self, asked: Asked, fleet: Fleet) -> Floats:
        """How likely each joins, [n]."""
