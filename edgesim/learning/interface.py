"""Interface of learning for the engine: the same for real training and for timing-only runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.accounts import Accounts
from edgesim.learning.jobs import Arrived, Promise
from edgesim.selection.view import Gradients, Knowledge

Signal = Literal["validation", "test"]


@dataclass(frozen=True)
class Merged:
    """Weights and measures of a merge's updates, one row per update."""

    ids: Integers
    weight: Floats
    """alpha_n over all updates merged, as the algorithm or, without rounds, the protocol weighs them; where several
    servers merge, each scales its own to a sum of 1."""
    loss: Floats | None
    """Mean training loss over the steps `Job.measured`; absent in timing-only runs, like the three below."""
    accuracy: Floats | None
    update_norm: Floats | None
    """Norm of the trainable part of the update."""
    loss_rms: Floats | None
    """Root of the moving mean square of per-sample losses (`edgesim.learning.local_sgd.moving_rms`)."""
    loss_drop: Floats | None = None
    """`edgesim.selection.view.Feedback.loss_drop`, where the policy looks at it."""
    metrics: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Rows of ``metrics`` about the round, by (name, key)."""
    server_wall_s: float = 0.0
    """Wall time of the merge and of the server's training, where the server trains."""


@dataclass(frozen=True)
class Evaluation:
    """The global model on test images of the classes seen so far."""

    loss: float
    accuracy: float
    """Share of samples that are right or, with several domains, the mean of this share over domains."""
    macro_f1: float
    class_accuracy: dict[int, float]
    further: dict[str, float] = field(default_factory=dict)
    """Other accuracies, by name: rows ``accuracy`` of ``metrics``."""
    domain_accuracy: dict[str, float] = field(default_factory=dict)
    """Accuracy on each domain, by name; empty for data sets without domains."""
    roc_auc: float | None = None
    """`edgesim.learning.ranking.roc_auc`; None where it is undefined or not asked for."""
    metrics: dict[str, float] = field(default_factory=dict)
    """`edgesim.learning.measures`, by name; without those that are undefined."""
    undefined: dict[str, str] = field(default_factory=dict)
    """Reasons why metrics have no value, by name."""
    class_f1: dict[int, float] = field(default_factory=dict)
    """F1 of each class tested; empty unless ``evaluation.measures`` is ``all``."""
    models: int | None = None
    """Number of devices' models of which all measures are means; None where they are of a single model."""


class TrainingRound(Knowledge, Gradients, Protocol):
    """Facts about the devices of one round, and the jobs that they begin.

    Jobs start from the state of the server when the round opens.
    """

    def start(self, ids: Integers) -> list[Promise]:
        """Promises of devices that begin to compute, [n]; nothing runs yet. A device has one promise in a round."""


MODEL_FILE = "model.safetensors"
"""The global model in a run's folder."""


class Learner(Protocol):
    """The global model over a run; with several servers, between averages, the average of their models."""

    accounts: Accounts
    """Bits, weights and ledger of the run's algorithm, without torch."""

    def serve(self, count: int, server_of: Callable[[Integers, float], Integers]) -> None:
        """Set the number of servers and which of them, from 0, serves each of some devices [n] at an instant in s.

        Jobs start from the model of the server at their start, which merges their updates unless `Arrived.server` is
        another one. Until then server 0 serves all.
        """

    def prepare(self, notice: Callable[[str], None]) -> None:
        """Make the start model, before the first round; ``notice`` hears of work that takes long."""

    def snapshot(self) -> dict[str, Any]:
        """Snapshot between two rounds, by name; `edgesim.base.saved` can pack it."""

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore the result of `snapshot`, in place of `prepare`."""

    @property
    def most_remembered_bytes(self) -> int:
        """Most bytes of models in a snapshot."""

    def open_round(self, round: int, frame: int, tasks: Integers | None = None, t_s: float = 0.0) -> TrainingRound:
        """Open a round (counted over the run, from 1) of a frame (from 1) at an instant of simulated time.

        Its devices begin with the data that they hold at that instant.

        ``tasks``, [N], are the numbers by which each device's samples are drawn; the round when absent. It is not
        copied: the number of a device that has started may move on.
        """

    def merge(
        self, arrived: Sequence[Arrived], began: Integers, sending: Callable[[], Sequence[Promise]] = tuple
    ) -> Merged:
        """Run the due jobs of updates that arrived, and merge them into the next model, by algorithm and protocol.

        Of two updates of a device the later begun comes later: the state of the device is that after the later.
        ``began`` are the devices that began to work since the last merge. Jobs of updates that the policy did not pick
        do not run, unless the algorithm merges those too. Where every update makes a model, the jobs of those that are
        on their way (``sending`` lists them) may run along with the one that arrived, which changes no result.
        """

    def write(self, promises: Sequence[Promise]) -> None:
        """Set `Grant.written_bits` of promised updates, whose jobs run; only where these bits depend on values."""

    def lose(self, promises: Sequence[Promise]) -> None:
        """Let devices remember updates that were lost on their way, whose due jobs run (``upload.lost = "add"``)."""

    def skip(self, trained: Sequence[Arrived]) -> Merged:
        """End a round that makes no model; its due jobs run only if devices keep their weights."""

    def signal(self, of: Signal) -> float:
        """Accuracy of the global model on test or validation images, by which ``merging`` decides on rounds.

        Only with ``merging``, and of the classes seen so far.
        """

    def epoch_accuracies(self, promises: Sequence[Promise]) -> list[tuple[float, ...]]:
        """Accuracy of the device after each local epoch of its due job, which runs if it has not; [n].

        Only asked where devices join by these (`edgesim.joining`), which timing-only runs refuse.
        """

    @property
    def jobs_trained(self) -> int:
        """Jobs that ran so far, over the whole run; each runs at most once."""

    def evaluate(self, frame: int) -> Evaluation | None:
        """Test the global model of a frame on the classes seen so far; None in timing-only runs."""

    def average_in_cloud(self) -> None:
        """Average the servers' models, weighted by the updates that each has merged since the last average."""

    def end_frame(self) -> None:
        """End the frame of the rounds opened last; the next may start from the best model of this one."""

    def save(self, folder: Path) -> None:
        """Write the global model as `MODEL_FILE`; timing-only runs write nothing."""

    def facts(self) -> dict[str, Any]:
        """Entries of ``run.json`` about learning; called before the first round and after the last."""

    def privacy(self, uploads: Mapping[int, int]) -> dict[str, Any]:
        """Entries of ``run.json`` on privacy, for a number of uploads by device; empty without ``privacy``."""

    def close(self) -> None:
        """End processes and free memory; the learner cannot train afterwards."""
