"""What the engine asks of learning: the same for real training and for timing-only runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from edgesim.algorithms.safa import Distribution
from edgesim.arrays import Floats, Integers
from edgesim.selection.view import Gradients, Knowledge

NOBODY: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Merged:
    """What an aggregation used, one row per device, in the order asked."""

    ids: Integers
    weight: Floats
    """alpha_n over all devices merged; where several servers merge, each scales its own to a sum of 1. Under SAFA the
    device's share of the whole cache."""
    loss: Floats | None
    """Mean training loss over the samples of the job; absent in timing-only runs, like the three below."""
    accuracy: Floats | None
    update_norm: Floats | None
    """Norm of the trainable part of the update."""
    loss_rms: Floats | None
    """Root of the moving mean square of per-sample losses (`edgesim.learning.local_sgd.moving_rms`)."""


@dataclass(frozen=True)
class Evaluation:
    """The global model on test images of the classes seen so far."""

    loss: float
    accuracy: float
    macro_f1: float
    class_accuracy: dict[int, float]


@dataclass(frozen=True)
class Stale:
    """An update that started from an older model."""

    training: "TrainingRound"
    """The round in which it began."""
    device: int
    staleness: int
    """Versions between the model it started from and the current one."""


class TrainingRound(Knowledge, Gradients, Protocol):
    """The training jobs of one round, as promises, and what can be known about its devices.

    Jobs start from the model that their server has when the round opens, or as ``distribution`` says.
    """

    distribution: Distribution | None
    """Under SAFA, which devices start from which model; None where all start from their server's."""

    def start(self, ids: Integers) -> None:
        """Submit the jobs of devices that begin to compute; nothing runs yet."""

    def due(self, device: int) -> None:
        """Mark the job of a device as due: its simulated work is finished."""

    def merge(self, ids: Integers, stale: Sequence[Stale] = (), undrafted: Integers = NOBODY) -> Merged:
        """Run the due jobs of the devices that arrived and merge their updates into the global model.

        ``stale`` are updates that arrived from earlier rounds; their rows follow those of ``ids``. Nobody at all keeps
        the model as it is. ``undrafted`` arrived but were not picked: under SAFA they count from the next round on and
        have rows too; otherwise their jobs do not run.
        """

    @property
    def jobs_trained(self) -> int:
        """Jobs that ran in this round so far; each runs at most once."""


class Learner(Protocol):
    """The global model over a run; between averages of several servers, what their average would be."""

    @property
    def model_bits(self) -> float:
        """Size of the model that a device sends: 32 bits per trainable parameter."""

    def serve(self, server: Integers) -> None:
        """Say which server merges the updates of each device, [N], counted from 0; one serves all until then."""

    def prepare(self, notice: Callable[[str], None]) -> None:
        """Make the start model, before the first round; ``notice`` hears of work that takes long."""

    def open_round(self, round: int, frame: int, draws: Integers | None = None) -> TrainingRound:
        """Open a round (counted over the run, from 1) of a frame (from 1).

        ``draws``, [N], says by which number each device's samples are drawn; by the round when absent. It is not
        copied: the number of a device that has started may move on.
        """

    def absorb(self, arrived: Sequence[Stale], sending: Callable[[], Sequence[Stale]]) -> Merged:
        """Run the jobs of updates that arrived without rounds, and make the next model of them by the protocol.

        ``buffered``: all at once (FedBuff). ``asynchronous``: one after another (FedAsync); the jobs of updates that
        are on their way (``sending`` lists them) may then run along with the one that arrived, which changes no result.
        """

    @property
    def jobs_trained(self) -> int:
        """Jobs that ran so far, over the whole run."""

    def evaluate(self, frame: int) -> Evaluation | None:
        """Test the global model on the classes seen up to a frame; None in timing-only runs."""

    def average_in_cloud(self) -> None:
        """Average the servers' models, weighted by what each has merged since the last time; all go on from there."""

    def end_frame(self) -> None:
        """End the frame of the rounds opened last; the next may start from the best model of this one."""

    def save(self, folder: Path) -> None:
        """Write the global model as ``model.safetensors``; timing-only runs have none to write."""

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says about learning."""

    def close(self) -> None:
        """Give back processes and memory; nothing can be trained any more."""
