"""A learner that trains nothing and imports no torch: the same events and rows, without losses and models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from edgesim.algorithms import fedavg, fedbuff, staleness
from edgesim.algorithms.safa import Versions
from edgesim.arrays import Floats, Integers
from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.learning.federation import Federation
from edgesim.learning.interface import NOBODY, Evaluation, Merged, Stale
from edgesim.learning.knowledge import CountKnowledge
from edgesim.learning.payload import model_bits
from edgesim.selection.view import ClassGradients
from edgesim.streams import Streams


class TimingOnlyRound(CountKnowledge):
    """A `TrainingRound` whose jobs are never run."""

    jobs_trained = 0

    def __init__(
        self,
        config: RunConfig,
        federation: Federation,
        streams: Streams,
        round: int,
        frame: int,
        draws: Integers | None,
        versions: Versions | None = None,
    ) -> None:
        super().__init__(federation, streams, config.learning, round, frame, draws)
        self._ageing = config.staleness
        self._versions = versions
        self.distribution = None if versions is None else versions.distribution(round)

    def start(self, ids: Integers) -> None:
        """Nothing to submit."""

    def due(self, device: int) -> None:
        """Nothing to mark."""

    def merge(self, ids: Integers, stale: Sequence[Stale] = (), undrafted: Integers = NOBODY) -> Merged:
        """The weights that an aggregation would use; losses, accuracies and norms are absent."""
        if self._versions is not None:
            ids = np.append(ids, undrafted)
            self._versions.merged(ids, self.round)
            return Merged(ids, self.shares()[ids], None, None, None, None)
        ages = np.array([0] * len(ids) + [late.staleness for late in stale])
        ids = np.append(np.asarray(ids, dtype=np.int64), np.array([late.device for late in stale], dtype=np.int64))
        counted = fedavg.counted(self.federation.frames[self.frame].sizes[ids], self.learning.weights)
        return Merged(ids, fedavg.weights(counted * staleness.weights(self._ageing, ages)), None, None, None, None)

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

    jobs_trained = 0

    def __init__(self, config: RunConfig, federation: Federation, streams: Streams) -> None:
        self._config = config
        self._federation = federation
        self._streams = streams
        self._versions: Versions | None = None

    @property
    def model_bits(self) -> float:
        """Size of the model that a device would send; raises `EdgesimError` where it cannot be known."""
        return model_bits(self._config.learning.model, self._federation)

    def serve(self, server: Integers) -> None:
        """There are no models to keep apart."""

    def prepare(self, notice: Callable[[str], None]) -> None:
        """There is no start model."""

    def open_round(self, round: int, frame: int, draws: Integers | None = None) -> TimingOnlyRound:
        """Open a round (counted over the run, from 1) of a frame (from 1); ``draws`` as in `Learner`."""
        if self._versions is None and self._config.learning.lag_tolerance is not None:
            self._versions = Versions.start(self._config.devices.count, self._config.learning.lag_tolerance, round)
        return TimingOnlyRound(self._config, self._federation, self._streams, round, frame, draws, self._versions)

    def absorb(self, arrived: Sequence[Stale], sending: Callable[[], Sequence[Stale]]) -> Merged:
        """The weights that the next model would give the updates."""
        ids = np.array([late.device for late in arrived], dtype=np.int64)
        ages = np.array([late.staleness for late in arrived])
        weight = absorbing_weights(self._config, ages)
        return Merged(ids, weight, None, None, None, None)

    def evaluate(self, frame: int) -> Evaluation | None:
        """There is no model to test."""
        return None

    def average_in_cloud(self) -> None:
        """There is nothing to average."""

    def end_frame(self) -> None:
        """There is no best model to go back to; under SAFA everybody begins a frame up to date."""
        self._versions = None

    def save(self, folder: Path) -> None:
        """There is no model to write."""

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says about learning."""
        return {"back_end": "none"}

    def close(self) -> None:
        """Nothing is held."""


def absorbing_weights(config: RunConfig, ages: Integers, change: Floats | None = None) -> Floats:
    """What each update absorbed without rounds counts, by its staleness, [n].

    ``buffered``: eta_g w(s) / K. ``asynchronous``: alpha w(s).
    """
    relative = staleness.weights(config.staleness, ages, change)
    if config.round.protocol == "buffered":
        assert config.round.server_lr is not None
        return fedbuff.weights(relative, config.round.server_lr)
    assert config.round.mixing is not None
    return relative * config.round.mixing


def _refuse(quantity: str) -> NoReturn:
    raise EdgesimError(f"learning.training: the policy looks at {quantity}, which 'none' does not have; use 'real'")
