"""A learner that trains nothing and imports no torch: the same events and rows, without losses and models."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.accounts import Accounts
from edgesim.learning.algorithms import halves
from edgesim.learning.algorithms.merge_rules import IN_ROUNDS, MergeRule
from edgesim.learning.drift.law import When
from edgesim.learning.federation import Federation
from edgesim.learning.interface import Evaluation, Merged, Signal
from edgesim.learning.jobs import Arrived, Promise
from edgesim.learning.knowledge import CountKnowledge
from edgesim.learning.payload import is_known, known_network
from edgesim.selection.view import ClassGradients
from edgesim.streams import Streams


class TimingOnlyRound(CountKnowledge):
    """A `TrainingRound` whose jobs are never run."""

    def __init__(self, accounts: Accounts, *knowledge: Any) -> None:
        super().__init__(*knowledge)
        self._accounts = accounts

    def start(self, ids: Integers) -> list[Promise]:
        """Promises without jobs, [n]."""
        self._accounts.begin(ids, self.round)
        held = zip(ids.tolist(), self.held.sizes[ids].tolist(), self.held.class_counts[ids], strict=True)
        return [Promise(device, self.round, samples=size, class_counts=counts) for device, size, counts in held]

    def losses(self, ids: Integers) -> Floats:
        """Refused."""
        _refuse("losses")

    def update_norms(self, ids: Integers) -> Floats:
        """Refused."""
        _refuse("update norms")

    def sent_norms(self, ids: Integers, room_bits: Callable[[], Floats] | None = None) -> Floats:
        """Refused."""
        _refuse("norms of updates as they are sent")

    def gradient_deviations(self, ids: Integers) -> Floats:
        """Refused."""
        _refuse("gradients")

    def class_gradient_distances(self, ids: Integers, part: Literal["all", "last_linear"]) -> ClassGradients:
        """Refused."""
        _refuse("gradients")


class TimingOnlyLearner:
    """A `Learner` without a model: the accounts of the algorithm are all that it has."""

    jobs_trained = 0

    def __init__(
        self, config: RunConfig, federation: Federation, streams: Streams, rule: MergeRule = IN_ROUNDS
    ) -> None:
        """Raises `EdgesimError` where size or features of the model are needed and cannot be known without torch."""
        network = known_network(config.learning, federation, config.round.payload_bits == "model")
        self.accounts = Accounts(config, federation, streams, network, rule)
        if self.accounts.local.features and not is_known(config.learning):
            raise EdgesimError(
                f"algorithm.name: {config.algorithm.name!r} needs features, the input of a model's last nn.Linear, "
                f"and without training those of learning.model = {config.learning.model!r} are unknown; train, or "
                "choose a model that `edgesim list` prints with its size",
                "algorithm.name",
                "learning.model",
            )
        self._knowledge = federation, streams, self.accounts.work
        self._downloads_are_known = all("known downloads" not in half.needs for half in halves(config.algorithm))

    def serve(self, count: int, server_of: Callable[[Integers, float], Integers]) -> None:
        """Nothing to do: there are no models."""

    def prepare(self, notice: Callable[[str], None]) -> None:
        """There is no start model."""

    def snapshot(self) -> dict[str, Any]:
        """Snapshot of the accounts between two rounds."""
        return self.accounts.snapshot()

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore the result of `snapshot`."""
        self.accounts.restore(remembered)

    most_remembered_bytes = 0

    def open_round(self, round: int, frame: int, tasks: Integers | None = None, t_s: float = 0.0) -> TimingOnlyRound:
        """Open a round (counted over the run, from 1) of a frame (from 1); ``tasks`` and ``t_s`` as in `Learner`."""
        accounts = self.accounts
        accounts.open_round(When(round, frame, t_s))
        return TimingOnlyRound(accounts, *self._knowledge, round, accounts.held, accounts.before, tasks)

    def merge(
        self, arrived: Sequence[Arrived], began: Integers, sending: Callable[[], Sequence[Promise]] = tuple
    ) -> Merged:
        """The weights that an aggregation would use; losses, accuracies and norms are absent."""
        accounts = self.accounts
        rows = accounts.arrivals(accounts.used(arrived), began)
        weight, metrics = accounts.weigh(rows), accounts.report(rows)
        return Merged(rows.ids, accounts.note(rows, weight), None, None, None, None, metrics=metrics)

    def write(self, promises: Sequence[Promise]) -> None:
        """No update is written: uploads are charged the most that they can take."""
        raise AssertionError("without training there are no values")

    def lose(self, promises: Sequence[Promise]) -> None:
        """Nothing is remembered of updates."""

    def epoch_accuracies(self, promises: Sequence[Promise]) -> list[tuple[float, ...]]:
        """Refused."""
        _refuse("accuracies of local epochs")

    def skip(self, trained: Sequence[Arrived]) -> Merged:
        """No round is skipped: the config refuses it."""
        raise AssertionError("rounds are skipped by accuracy, which is not known without training")

    def signal(self, of: Signal) -> float:
        """There is no model to test."""
        raise AssertionError("without training there is no accuracy")

    def evaluate(self, frame: int) -> Evaluation | None:
        """There is no model to test."""
        return None

    def average_in_cloud(self) -> None:
        """There is nothing to average."""

    def end_frame(self) -> None:
        """End the frame of the accounts; there is no best model to restore."""
        self.accounts.end_frame()

    def save(self, folder: Path) -> None:
        """There is no model to write."""

    def facts(self) -> dict[str, Any]:
        """Entries of ``run.json`` about learning."""
        facts: dict[str, Any] = {"back_end": "none", **self.accounts.facts()}
        if not self._downloads_are_known:
            facts["bits_down_notice"] = "the most that the server may send: without training it is not known"
        return facts

    def privacy(self, uploads: Mapping[int, int]) -> dict[str, Any]:
        """Entries of ``run.json`` on privacy, for a model without buffers; whether it has any is unknown."""
        return self.accounts.privacy(uploads, has_buffers=False)

    def close(self) -> None:
        """There is nothing to close."""


def _refuse(quantity: str) -> NoReturn:
    raise EdgesimError(f"learning.training: the policy uses {quantity}, which 'none' does not have; use 'real'")
