"""One round of real training: its jobs, as promises, and what can be known about its devices."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from edgesim.algorithms import fedavg, staleness
from edgesim.algorithms.algorithm import Phase
from edgesim.algorithms.staleness import relative_change
from edgesim.arrays import Floats, Integers
from edgesim.errors import Diverged
from edgesim.learning.augmentation import draws
from edgesim.learning.batches import batch_samples, statistics_samples, step_edges
from edgesim.learning.class_gradients import class_gradient_distances
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import NOBODY, Merged, Stale
from edgesim.learning.jobs import Job, Optimiser, Promise, Result
from edgesim.learning.knowledge import CountKnowledge, size_weighted_shares
from edgesim.learning.loss_passes import gradient_deviations, mean_losses
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible
from edgesim.selection.shares import class_shares
from edgesim.selection.view import ClassGradients

if TYPE_CHECKING:
    from edgesim.learning.learner import TorchLearner


class TorchRound(CountKnowledge):
    """A `TrainingRound` whose jobs run when their results are wanted."""

    def __init__(self, learner: "TorchLearner", round: int, frame: int, draws: Integers | None = None) -> None:
        super().__init__(learner.federation, learner.streams, learner.config.learning, round, frame, draws)
        self._learner = learner
        self._start = learner.global_weights
        self._starts = list(learner.server_weights)
        self.distribution = None if learner.versions is None else learner.versions.distribution(round)
        self._promises: dict[int, Promise] = {}
        self._jobs_trained = 0

    @property
    def jobs_trained(self) -> int:
        """Jobs that ran in this round so far; each runs at most once."""
        return self._jobs_trained

    def start(self, ids: Integers) -> None:
        """Submit the jobs of devices that begin to compute; nothing runs yet."""
        new = np.array([device for device in ids if int(device) not in self._promises], dtype=np.int64)
        learning = self.learning
        drawn = batch_samples(self.federation, self.streams, new, self.draws[new], self.frame, learning)
        seeds = self.streams.seeds("job", new, self.draws[new])
        optimiser = Optimiser(learning.lr_in(self.round), learning.momentum, learning.weight_decay)
        augment = self._learner.config.data.augment
        counts = [len(samples) for samples in drawn]
        changes = draws(augment, self.streams, "augmentation", new, self.draws[new], counts)
        sizes = self.federation.frames[self.frame].sizes[new].tolist()
        edges = {size: step_edges(size, learning) for size in set(sizes)}
        for device, size, samples, seed, moves in zip(new.tolist(), sizes, drawn, seeds.tolist(), changes, strict=True):
            phases = (Phase(samples, edges[size], moves),)
            job = Job(device, self.round, seed, phases, {"start": self._start_of(device)}, optimiser)
            self._promises[device] = Promise(device, self.round, job)

    def _start_of(self, device: int) -> Tensor:
        """The model from which a device's job starts, [P]."""
        if self.distribution is not None and self.distribution.tolerable[device]:
            assert self._learner.cache is not None
            return self._learner.cache.own(device)
        return self._starts[int(self._learner.server[device])]

    def due(self, device: int) -> None:
        """Mark the job of a device as due: its simulated work is finished."""
        self._promises[int(device)].due = True

    def merge(self, ids: Integers, stale: Sequence[Stale] = (), undrafted: Integers = NOBODY) -> Merged:
        """Run the due jobs of the devices that arrived and merge their updates into the global model.

        ``stale`` are updates that arrived from earlier rounds: what they changed of the older model they started from
        is added to this one, by their weights. Nobody at all keeps the model as it is. ``undrafted`` as in
        `TrainingRound`. Raises `Diverged`, and ValueError for a device whose job is not due.
        """
        if self.distribution is not None:
            return self._merge_in_cache(np.asarray(ids, dtype=np.int64), undrafted)
        promises = [self._promises[device] for device in np.asarray(ids).tolist()]
        promises += [promise_of(late) for late in stale]
        merged = np.array([promise.device for promise in promises], dtype=np.int64)
        results = self._fulfil_due(promises)
        counted = fedavg.counted(self.federation.frames[self.frame].sizes[merged], self.learning.weights)
        counted *= self._relative_weights(results, len(ids), stale)
        # Ascending ids: the floating-point sum must not depend on the order of arrival.
        order = np.argsort(merged, kind="stable")
        server = self._learner.server[merged]
        for each in np.unique(server).tolist():
            rows = order[server[order] == each]
            with reproducible(self._learner.torch_device):
                updates = torch.stack([results[row].update for row in rows])
                weights = fedavg.aggregate(self._starts[each], updates, fedavg.weights(counted[rows]))
                self._learner.take(each, weights, float(counted[rows].sum()))
                self._refuse_divergence()
        return merged_by(promises, results, fedavg.weights(counted))

    def _merge_in_cache(self, picked: Integers, undrafted: Integers) -> Merged:
        """SAFA: the next model is the mean of the cache, which takes in ``undrafted`` uploads after it."""
        learner, distribution = self._learner, self.distribution
        assert distribution is not None
        assert learner.versions is not None
        assert learner.cache is not None
        finished = np.append(picked, undrafted)
        promises = [self._promises[device] for device in finished.tolist()]
        results = self._fulfil_due(promises)
        shares = self.shares()
        with reproducible(learner.torch_device):
            models = {p.device: start_of(p) + result.update for p, result in zip(promises, results, strict=True)}
            weights = learner.cache.merge(
                self._start,
                shares,
                distribution.deprecated,
                [device for device in self._promises if not distribution.tolerable[device]],
                {device: models[device] for device in picked.tolist()},
                {device: models[device] for device in undrafted.tolist()},
            )
            learner.hand_out(weights)
        learner.versions.merged(finished, self.round)
        self._refuse_divergence()
        return merged_by(promises, results, shares[finished])

    def _relative_weights(self, results: list[Result], fresh: int, stale: Sequence[Stale]) -> Floats:
        """What each update counts for its age, [n]: 1 for the first ``fresh`` of them."""
        config = self._learner.config.staleness
        if not stale:
            return np.ones(fresh)
        change = None
        if config.weight == "refl":
            trained = torch.stack([result.update[: self._learner.model.trainable] for result in results])
            change = relative_change(trained[fresh:], trained[:fresh])
        ages = np.array([late.staleness for late in stale], dtype=np.int64)
        return np.append(np.ones(fresh), staleness.weights(config, ages, change))

    def losses(self, ids: Integers) -> Floats:
        """Mean loss of the round's start model on each device's data set, [n]."""
        frame = self.federation.frames[self.frame]
        with self._loaded(self._start) as (model, data):
            return mean_losses(model, data, [frame.clients[device] for device in ids], self._learner.cores)

    def update_norms(self, ids: Integers) -> Floats:
        """Norm of each device's update of this round, [n]; runs the jobs."""
        self.start(ids)
        return np.array(
            [result.update_norm for result in self._fulfil([self._promises[int(device)] for device in ids])]
        )

    def gradient_deviations(self, ids: Integers) -> Floats:
        """Standard deviation of per-sample gradients on each device's first batch of the round, [n]."""
        drawn = batch_samples(self.federation, self.streams, ids, self.draws[ids], self.frame, self.learning)
        sizes = self.federation.frames[self.frame].sizes[ids]
        firsts = [
            samples[: step_edges(int(size), self.learning)[1]] for samples, size in zip(drawn, sizes, strict=True)
        ]
        # Twice the sample of a device that has but one: as in training by steps, it deviates by nothing.
        firsts = [np.resize(batch, max(2, len(batch))) for batch in firsts]
        with self._loaded(self._start) as (model, data):
            return gradient_deviations(model, data, firsts, self.learning.memory_budget_mib, self._learner.cores)

    def class_gradient_distances(self, ids: Integers, part: Literal["all", "last_linear"]) -> ClassGradients:
        """Distances of the devices' class gradients to the global ones, at the global model as it is now."""
        ids = np.asarray(ids, dtype=np.int64)
        sizes = self.federation.frames[self.frame].sizes
        class_count = self.federation.class_count
        every = np.arange(len(sizes))
        batches = statistics_samples(self.federation, self.streams, every, self.draws, self.frame, self.learning)
        labels = [self._learner.dataset.train_labels[batch] for batch in batches]
        counts = np.stack([np.bincount(batch, minlength=class_count) for batch in labels])
        distances = np.zeros((0, class_count))
        if len(ids):
            with self._loaded(self._learner.global_weights) as (model, data):
                distances = class_gradient_distances(
                    model,
                    data,
                    batches,
                    labels,
                    sizes / sizes.sum(),
                    ids,
                    class_count,
                    part,
                    self.learning.memory_budget_mib,
                    self._learner.cores,
                )
        return ClassGradients(distances, class_shares(counts[ids]), size_weighted_shares(sizes, counts))

    @contextmanager
    def _loaded(self, weights: Tensor) -> Iterator[tuple[FlatModel, DeviceData]]:
        learner = self._learner
        with reproducible(learner.torch_device):
            learner.model.load(weights)
            yield learner.model, learner.data

    def _refuse_divergence(self) -> None:
        if not bool(self._learner.global_weights.isfinite().all()):
            raise Diverged(f"round {self.round}: the merged model is not finite; lower learning.lr")

    def _fulfil_due(self, promises: list[Promise]) -> list[Result]:
        early = [promise.device for promise in promises if not promise.due]
        if early:
            raise ValueError(f"jobs of devices {early} are not due: their simulated work is not finished")
        return self._fulfil(promises)

    def _fulfil(self, promises: list[Promise]) -> list[Result]:
        with reproducible(self._learner.torch_device):
            self._jobs_trained += self._learner.run(promises)
        return [promise.result for promise in promises if promise.result is not None]


def promise_of(late: Stale) -> Promise:
    """The promise behind an update that started from an older model."""
    assert isinstance(late.training, TorchRound)
    return late.training._promises[late.device]


def start_of(promise: Promise) -> Tensor:
    """The weights from which a promised job starts, [P]."""
    assert promise.job is not None
    return promise.job.start


def merged_by(promises: list[Promise], results: list[Result], weight: Floats) -> Merged:
    """What an aggregation used, with the weight of each update, [n]."""
    return Merged(
        np.array([promise.device for promise in promises], dtype=np.int64),
        weight,
        np.array([result.loss for result in results]),
        np.array([result.accuracy for result in results]),
        np.array([result.update_norm for result in results]),
        np.array([result.loss_rms for result in results]),
    )
