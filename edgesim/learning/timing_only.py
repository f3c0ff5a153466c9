"""A learner that trains nothing and imports no torch: the same events and rows, without losses and models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from edgesim.algorithms.fedavg import weights
from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.learning.federation import Federation
from edgesim.learning.interface import Evaluation, Merged, TrainingRound
from edgesim.learning.knowledge import CountKnowledge
from edgesim.learning.payload import model_bits
from edgesim.selection.view import ClassGradients, Floats, Integers
from edgesim.streams import Streams


class TimingOnlyRound(CountKnowledge):
    """A `TrainingRound` whose jobs are never run."""

    jobs_trained = 0

    def start(self, ids: Integers) -> None:
        """Nothing to submit."""

    def due(self, device: int) -> None:
        """Nothing to mark."""

    def merge(self, ids: Integers, stale: Sequence[tuple[TrainingRound, int]] = ()) -> Merged:
        """The weights that an aggregation would use; losses, accuracies and norms are absent."""
        ids = np.append(np.asarray(ids, dtype=np.int64), np.array([device for _, device in stale], dtype=np.int64))
        return Merged(ids, weights(self.federation.frames[self.frame].sizes[ids]), None, None, None)

    def losses(self, ids: Integers) -> Floats:
        """Refused."""
        _refuse("losses")

    def update_norms(self, ids: Integers) -> Floats:
        """Refused."""
        _refuse("update norms")

    def gradient_deviations(self, ids: Integers) -> Floats:
        """Refused."""
        _refuse("gradients")

    def class_gradient_distances(self, ids: Integers, part: Literal["all", "last_linear"]) -> ClassGradients:
        """Refused."""
        _refuse("gradients")


class TimingOnlyLearner:
    """A `Learner` without a model."""

    def __init__(self, config: RunConfig, federation: Federation, streams: Streams) -> None:
        self._config = config
        self._federation = federation
        self._streams = streams

    @property
    def model_bits(self) -> float:
        """Size of the model that a device would send; raises `EdgesimError` where it cannot be known."""
        return model_bits(self._config.learning.model, self._federation)

    def prepare(self, notice: Callable[[str], None]) -> None:
        """There is no start model."""

    def open_round(self, round: int, frame: int) -> TimingOnlyRound:
        """Open a round (counted over the run, from 1) of a frame (from 1)."""
        return TimingOnlyRound(self._federation, self._streams, self._config.learning, round, frame)

    def evaluate(self, frame: int) -> Evaluation | None:
        """There is no model to test."""
        return None

    def end_frame(self) -> None:
        """There is no best model to go back to."""

    def save(self, folder: Path) -> None:
        """There is no model to write."""

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says about learning."""
        return {"back_end": "none"}


def _refuse(quantity: str) -> NoReturn:
    raise EdgesimError(f"learning.training: the policy looks at {quantity}, which 'none' does not have; use 'real'")
