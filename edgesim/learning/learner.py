"""Real training: the global model over a run."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from edgesim.algorithms import fedasync, fedbuff, hierarchical
from edgesim.algorithms.algorithm import Sizes
from edgesim.algorithms.fedprox import FedProx
from edgesim.algorithms.safa import Cache, Versions
from edgesim.algorithms.staleness import relative_change
from edgesim.arrays import Integers
from edgesim.config import RunConfig
from edgesim.errors import Diverged
from edgesim.files.paths import own_file
from edgesim.learning.back_ends import make_back_end
from edgesim.learning.determinism import refuse_nondeterminism
from edgesim.learning.evaluation import evaluate, predictions
from edgesim.learning.federation import Federation
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import Evaluation, Merged, Stale
from edgesim.learning.jobs import Promise
from edgesim.learning.lone_samples import refuse_lone_samples
from edgesim.learning.models import new_model
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.pretrain import StartModel, start_model
from edgesim.learning.tensors import DeviceData
from edgesim.learning.timing_only import absorbing_weights
from edgesim.learning.torch_settings import device_kind, memory_lasts, pick_device, reproducible
from edgesim.learning.training_round import TorchRound, merged_by, promise_of, start_of
from edgesim.streams import Streams

_BEST_MODEL_SAMPLES = 2000


def make_learner(config: RunConfig, federation: Federation, streams: Streams, cores: int = 1) -> "TorchLearner":
    """The learner of a resolved config, on so many processor cores.

    Raises `EdgesimError` for a model that does not fit the images.
    """
    return TorchLearner(config, federation, streams, cores)


class TorchLearner:
    """A `Learner` that trains."""

    def __init__(self, config: RunConfig, federation: Federation, streams: Streams, cores: int) -> None:
        dataset = federation.dataset
        assert dataset is not None, "the config refuses real training without a dataset"
        self.config = config
        self.federation = federation
        self.streams = streams
        self.dataset = dataset
        self.cores = cores
        learning = config.learning
        self.torch_device = pick_device(learning.device)
        seed = int(streams.seeds("initial-weights", 0))
        build = partial(new_model, learning.model, dataset.image_shape, dataset.class_count, seed)
        elsewhere = "" if self.torch_device.type == "cpu" else ", or set learning.device = 'cpu'"
        with (
            reproducible(self.torch_device),
            memory_lasts(
                f"loading model and images onto the {self.torch_device.type}",
                f"choose a smaller learning.model or data.dataset{elsewhere}",
            ),
        ):
            module = build()
            refuse_lone_samples(module, federation, learning)
            self.model = FlatModel(module, self.torch_device, learning.precision == "mixed")
            refuse_nondeterminism(self.model, learning.model, dataset.image_shape)
            self.data = DeviceData(dataset, self.torch_device)
            options = FedProx.Options(weights=learning.weights, mu=learning.proximal)
            sizes = Sizes(self.model_bits, config.devices.count)
            algorithm = FedProx(options, sizes, streams)
            self.back_end, self._notice = make_back_end(learning, self.model, self.data, build, cores, algorithm)
        self.global_weights: Tensor = self.model.snapshot()
        self.server: Integers = np.zeros(config.devices.count, dtype=np.int64)
        """Which server merges the updates of each device, [N]."""
        self._counted = np.zeros(1)
        """What the updates that each server merged since the last average count together, [E]."""
        self.server_weights: list[Tensor] = [self.global_weights]
        """The model of each server, [E] of [P]."""
        self.versions: Versions | None = None
        """Under SAFA, how far behind each device is; None until a frame begins, like the cache."""
        self.cache: Cache | None = None
        self._start: StartModel | None = None
        self._in_frame = False
        self._round = 0
        self._made_in = 0
        """The round that made the global model."""
        self.jobs_trained = 0
        """Jobs that ran so far, over the whole run."""
        self._best: tuple[float, Tensor] | None = None

    @property
    def model_bits(self) -> float:
        """Size of the model that a device sends: 32 bits per trainable parameter."""
        return float(BITS_PER_PARAMETER * self.model.trainable)

    def serve(self, server: Integers) -> None:
        """Say which server merges the updates of each device, [N], counted from 0; one serves all until then."""
        self.server = server
        self._counted = np.zeros(int(server.max()) + 1)
        self.hand_out(self.global_weights)

    def take(self, server: int, weights: Tensor, counted: float) -> None:
        """A server has a new model, into which it merged updates that count so much together."""
        self._made_in = self._round
        self.server_weights[server] = weights
        self._counted[server] += counted
        self.global_weights = hierarchical.average(self.server_weights, self._counted)

    def average_in_cloud(self) -> None:
        """Average the servers' models, weighted by what each has merged since the last time; all go on from there."""
        self.hand_out(self.global_weights)

    def hand_out(self, weights: Tensor) -> None:
        """All servers go on from one model, [P]."""
        self._made_in = self._round
        self.global_weights = weights
        self.server_weights = [weights] * len(self._counted)
        self._counted = np.zeros(len(self._counted))

    def prepare(self, notice: Callable[[str], None]) -> None:
        """Pre-train the start model on the old classes, or read it from the cache, if the config says so.

        ``notice`` also hears once of a back end that the model does not allow.
        """
        if self._notice:
            notice(self._notice)
        if self.config.learning.pretrain:
            with reproducible(self.torch_device):
                self._start = start_model(self.model, self.data, self.federation, self.config, self.streams, notice)
            self.hand_out(self._start.weights)

    def open_round(self, round: int, frame: int, draws: Integers | None = None) -> "TorchRound":
        """Open a round (counted over the run, from 1) of a frame (from 1); ``draws`` as in `Learner`."""
        self._in_frame = True
        self._round = round
        lag = self.config.learning.lag_tolerance
        if self.versions is None and lag is not None:
            self.versions = Versions.start(self.config.devices.count, lag, round)
            self.cache = Cache(self.global_weights)
        return TorchRound(self, round, frame, draws)

    def absorb(self, arrived: Sequence[Stale], sending: Callable[[], Sequence[Stale]]) -> Merged:
        """Make the next model of updates that arrived without rounds, by the protocol; raises `Diverged`.

        Where updates are merged one by one, jobs of those on their way (``sending``) run along with the one wanted: few
        of them are lost, and one job at a time leaves cores idle and stacks nothing.
        """
        promises = [promise_of(late) for late in arrived]
        ages = np.array([late.staleness for late in arrived])
        with reproducible(self.torch_device):
            if self.config.round.protocol == "asynchronous":
                self._run_along(promises, [promise_of(late) for late in sending()])
            self.run(promises)
            results = [promise.result for promise in promises if promise.result is not None]
            change = None
            if self.config.staleness.weight == "refl":
                trained = torch.stack([result.update[: self.model.trainable] for result in results])
                change = relative_change(trained, trained[torch.from_numpy(ages == 0)])
            weight = absorbing_weights(self.config, ages, change)
            if self.config.round.protocol == "buffered":
                updates = torch.stack([result.update for result in results])
                self.global_weights = fedbuff.aggregate(self.global_weights, updates, weight)
            else:
                for promise, result, alpha in zip(promises, results, weight.tolist(), strict=True):
                    self.global_weights = fedasync.mix(self.global_weights, start_of(promise) + result.update, alpha)
            self.hand_out(self.global_weights)
            if not bool(self.global_weights.isfinite().all()):
                raise Diverged(f"round {self._round}: the merged model is not finite; lower learning.lr")
        return merged_by(promises, results, weight)

    def _run_along(self, promises: list[Promise], others: list[Promise]) -> None:
        """Fulfil promises, if any is still open, and others in the same batch."""
        if others and any(promise.result is None for promise in promises):
            # What fails is told when its own update is wanted, which may never be.
            with suppress(Diverged):
                self.run([*promises, *others])

    def run(self, promises: list[Promise]) -> int:
        """Run those jobs that have not run yet; how many these were, which `jobs_trained` counts."""
        waiting = {id(promise): promise for promise in promises if promise.result is None}.values()
        try:
            self.back_end.run(promises)
        finally:
            # Where one fails, those before it have run.
            ran = sum(promise.result is not None for promise in waiting)
            self.jobs_trained += ran
        return ran

    def evaluate(self, frame: int) -> Evaluation:
        """Test the global model on the classes seen up to a frame.

        After a round of a frame that another one follows, the model is also considered for `end_frame`.
        Raises `Diverged` when the loss is not finite.
        """
        with reproducible(self.torch_device):
            self.model.load(self.global_weights)
            samples = self._test_samples(frame)
            evaluation = evaluate(self.model, self.data, samples, self.dataset.test_labels[samples], self.cores)
            if not np.isfinite(evaluation.loss):
                raise Diverged(f"round {self._made_in}: the test loss is not finite; lower learning.lr")
            if self._in_frame and self._keeps_best(frame):
                self._consider(frame)
        return evaluation

    def end_frame(self) -> None:
        """Go back to the best model of the frame, if it is to be kept and another frame follows.

        Best is the least mean loss on a fixed sample of the devices' training images, among the rounds
        evaluated (FedTeddi, Algorithm 1). Under SAFA everybody begins a frame up to date, with the global model.
        """
        if self._best is not None:
            self.hand_out(self._best[1])
        self._best = None
        self.versions = self.cache = None
        self._in_frame = False

    def save(self, folder: Path) -> None:
        """Write the global model as ``model.safetensors``."""
        self.model.load(self.global_weights)
        save_file(self.model.state(), own_file(folder / "model.safetensors"))

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says about learning."""
        facts: dict[str, Any] = {
            "back_end": self.back_end.name,
            "device_kind": device_kind(self.torch_device),
            "torch": torch.__version__,
            "parameters": self.model.trainable,
        }
        if self._notice is not None:
            facts["back_end_notice"] = self._notice
        if self._start is not None:
            facts |= {"pretrain_epochs": self._start.epochs, "pretrain_accuracy": self._start.accuracy}
        return facts

    def close(self) -> None:
        """End the processes that train."""
        self.back_end.close()

    def _test_samples(self, frame: int) -> Integers:
        """Test images of the classes seen; a sample is the head of one permutation for the whole run."""
        order = self.streams.generator("test-sample").permutation(len(self.dataset.test_labels))
        seen = np.isin(self.dataset.test_labels[order], self.federation.frames[frame].classes_seen)
        return np.sort(order[seen][: self.config.evaluation.samples])

    def _keeps_best(self, frame: int) -> bool:
        return self.config.learning.keep_best and frame + 1 < len(self.federation.frames)

    def _consider(self, frame: int) -> None:
        held = self.federation.frames[frame].samples
        random = self.streams.generator("best-model-sample", round=frame)
        sample = random.choice(held, min(_BEST_MODEL_SAMPLES, len(held)), replace=False)
        loss = float(predictions(self.model, self.data, sample, False, self.cores)[0].mean())
        if self._best is None or loss < self._best[0]:
            self._best = (loss, self.global_weights)
