"""The base class of protocols, which say when the next model of a run is made."""

from typing import Any, ClassVar

from edgesim.base.needs import Rule
from edgesim.config import RoundConfig, Section, StaleWeight
from edgesim.engine.process import Process
from edgesim.engine.run_parts import RunParts
from edgesim.engine.synchronous import Rounds
from edgesim.engine.unsynchronised import Unsynchronised
from edgesim.learning.algorithms.merge_rules import MergeRule


class Protocol:
    """When models are made, and of how many updates; to add a protocol, write a subclass in a file.

    It has options and no state: what it remembered would be lost when a run resumes.
    """

    Options: ClassVar[type[Section]] = Section
    """Options of the protocol, keys of ``round.protocol_options``."""
    merge_rule: ClassVar[type[MergeRule]] = MergeRule
    """Weights of the updates of a model, made with the options."""
    has_rounds: ClassVar[bool] = True
    """Whether devices work in rounds with a deadline; else ``round.count`` devices are always at work."""
    stale_weight: ClassVar[StaleWeight] = "constant"
    """Default of ``staleness.weight``."""
    rules: ClassVar[tuple[Rule, ...]] = ()
    """Rules that the protocol's options and other keys of the config must meet together."""
    none_made: ClassVar[str] = "round was finished"
    """End of the message for a run without a single model."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.rule = self.merge_rule(options)

    def wanted(self, taken: int, knobs: RoundConfig) -> int | None:
        """Number of arrivals that closes a round in which so many devices were taken; None: the deadline alone does.

        Without rounds ``taken`` is the number of devices at work, and the arrivals since the last model count.
        """
        return self.rule.updates_per_model

    def begin(self, parts: RunParts) -> Process:
        """The process that makes the models of a run."""
        return Rounds(parts, self.wanted) if self.has_rounds else Unsynchronised(parts, self.wanted)
