"""What a drift law is: which data each device holds, as a function of the round or of simulated time.

A law knows nothing of policies: what it answers depends on the config, the seed and the instant asked about alone, in
whichever order it is asked.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from edgesim.base.arrays import Integers
from edgesim.base.needs import Rule
from edgesim.config import RunConfig, Section
from edgesim.learning.datasets import Dataset
from edgesim.learning.drift.held_out import HeldOut
from edgesim.learning.drift.holdings import Holdings
from edgesim.streams import Streams


class When(NamedTuple):
    """An instant of a run."""

    round: int
    """Over the whole run, from 1; 0 before the first. Without rounds, the model that is being made."""
    frame: int
    """From 1; 0 before the first round."""
    t_s: float


START = When(0, 0, 0.0)
"""Before the first round."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What a law deals out, and to whom."""

    config: RunConfig
    dataset: Dataset
    private: Integers
    """Training samples that devices may hold, ascending, [n]."""
    streams: Streams
    holds_out: bool = False
    """Whether devices keep some of their samples to measure themselves on."""


class Drift(Protocol):
    """The data of one run."""

    @property
    def moves(self) -> bool:
        """Whether data may change at other instants than the end of a frame."""

    @property
    def in_seconds(self) -> bool:
        """Whether they change with simulated time, not with the number of the round."""

    @property
    def frames(self) -> Sequence[Holdings]:
        """What devices hold before the first round, and at the start of each frame."""

    def at(self, when: When) -> Holdings:
        """What devices hold at an instant; the same object as before where nothing has changed since."""

    def before(self, when: When, last: Holdings) -> Holdings:
        """What policies compare the data of a round with; ``last`` is what devices held as the round before began."""

    @property
    def held_out(self) -> HeldOut:
        """What devices keep to measure themselves on; it is drawn once, and in no data set."""

    def sizes_ahead(self) -> Integers:
        """Sizes of the data sets with which devices may train in the run, in any order."""

    def note(self) -> str:
        """What is to be said of the law before a run; empty if nothing is."""


class Law(Section, ABC):
    """A drift law; its fields are the options in ``[drift]``."""

    default_samples: ClassVar[int | None] = 60
    """``data.samples_per_device`` when absent; None where the law alone says how many samples devices hold."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    """What its options need of other keys, or rule out."""

    @abstractmethod
    def make(self, setting: Setting) -> Drift:
        """The data of a run; raises `EdgesimError` where samples or classes do not suffice."""
