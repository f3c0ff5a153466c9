"""What a protocol does with updates that arrived: which weights they get, and in which order they enter the model."""

from typing import Any, ClassVar

from edgesim.algorithms.algorithm import Algorithm, Arrivals, Options, State
from edgesim.arrays import Floats


class MergeRule:
    """In rounds: the algorithm weighs the updates of a round and merges them at once."""

    Options: ClassVar[type[Options]] = Options
    in_order_of_arrival: ClassVar[bool] = False
    """Whether updates enter a sum in order of arrival; else in the order of their devices' ids."""
    one_by_one: ClassVar[bool] = False
    """Whether every single update makes a model."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def updates_per_model(self) -> int:
        """Updates that make the next model, for protocols without rounds."""
        return 1

    def weigh(self, algorithm: Algorithm, arrived: Arrivals) -> Floats:
        """What each update counts, [S]."""
        return algorithm.weigh(arrived)

    def merge(self, algorithm: Algorithm, state: State, arrived: Arrivals, alpha: Floats, ledger: Any) -> State:
        """The next state of the server."""
        return algorithm.merge(state, arrived, alpha, ledger)
