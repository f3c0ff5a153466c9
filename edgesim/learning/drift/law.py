"""Interface of drift laws: the data set of each device as a function of the round or of simulated time.

A law knows nothing of policies: its data sets depend on the config, the seed and the instant alone, not on the order in
which instants are asked for.
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
    """Round of the whole run, from 1; 0 before the first. Without rounds, the number of the model in the making."""
    frame: int
    """Frame of the run, from 1; 0 before the first round."""
    t_s: float
    """Simulated instant."""


START = When(0, 0, 0.0)
"""Before the first round."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Inputs of a law: the config of a run, its data set and its random streams."""

    config: RunConfig
    """Complete config of the run."""
    dataset: Dataset
    """Data set, of which devices hold training samples."""
    private: Integers
    """Training samples that devices may hold, ascending, [n]."""
    streams: Streams
    """Random draws by name, device and round."""
    holds_out: bool = False
    """Whether devices keep some of their samples to measure themselves on."""


class Drift(Protocol):
    """The data sets of all devices over one run."""

    @property
    def moves(self) -> bool:
        """Whether data may change at other instants than the end of a frame."""

    @property
    def in_seconds(self) -> bool:
        """Whether data change with simulated time, not with the number of the round."""

    @property
    def frames(self) -> Sequence[Holdings]:
        """Data sets before the first round (frame 0), and at the start of each frame."""

    def at(self, when: When) -> Holdings:
        """Data sets at an instant; the same object as before where nothing has changed since."""

    def before(self, when: When, last: Holdings) -> Holdings:
        """Data sets with which policies compare those of a round; ``last`` are the data sets of the round before."""

    @property
    def held_out(self) -> HeldOut:
        """Samples on which devices measure themselves; drawn once, and in no data set."""

    def sizes_ahead(self) -> Integers:
        """Sizes of the data sets with which devices may train in the run, in any order."""

    @property
    def warning(self) -> str:
        """Warning about the law before a run; empty where there is none."""


class Law(Section, ABC):
    """A drift law; its fields are the options in ``[drift]``."""

    default_samples: ClassVar[int | None] = 60
    """``data.samples_per_device`` when absent; None where the law decides how many samples devices hold."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    """Keys that the law's options need, or rule out."""

    @abstractmethod
    def make(self, setting: Setting) -> Drift:
        """The data of a run; raises `EdgesimError` where samples or classes do not suffice."""
