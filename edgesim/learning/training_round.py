"""A round of real training: promises of the jobs that its devices begin, and facts about the devices."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from torch import Tensor
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning.algorithms.records import Device, Phase, Samples
from edgesim.learning.augmentation import draw_changes
from edgesim.learning.batches import epoch_edges, epoch_places, statistics_samples
from edgesim.learning.class_gradients import class_gradient_distances
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, Optimiser, Promise, devices_and_tasks
from edgesim.learning.knowledge import CountKnowledge, size_weighted_shares
from edgesim.learning.loss_passes import gradient_deviations, mean_losses
from edgesim.learning.rates import rate_in
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible
from edgesim.selection.shares import class_shares
from edgesim.selection.view import ClassGradients

if TYPE_CHECKING:
    from edgesim.learning.learner import TorchLearner

_NOTHING = np.empty(0, dtype=np.int64)


class TorchRound(CountKnowledge):
    """A `TrainingRound` whose jobs run when their results are wanted."""

    def __init__(self, learner: "TorchLearner", tasks: Integers | None = None) -> None:
        accounts, learning = learner.accounts, learner.config.learning
        data = accounts.when.round, accounts.held, accounts.before
        super().__init__(learner.federation, learner.streams, accounts.work, *data, tasks)
        self._learner, self.learning = learner, learning
        self._start, self._states = learner.global_weights, list(learner.states)
        if learner.public is not None:
            self._start = learner.public.weights
            self._states = [replace(state, weights=self._start) for state in self._states]
        self._promises: dict[int, Promise] = {}
        self._batches: dict[int, Integers] = {}
        """`batches` of the devices asked about so far: policies measure on what the jobs then train on."""

    @override
    def batches(self, ids: Integers) -> list[Integers]:
        new = np.array([device for device in ids.tolist() if device not in self._batches], dtype=np.int64)
        if len(new):
            self._batches.update(zip(new.tolist(), super().batches(new), strict=True))
        return [self._batches[device] for device in ids.tolist()]

    def start(self, ids: Integers) -> list[Promise]:
        """Promises of devices that begin to compute, [n]; nothing runs yet. A device has one promise in a round."""
        new = np.array([device for device in ids.tolist() if device not in self._promises], dtype=np.int64)
        learner = self._learner
        learner.accounts.begin(new, self.round)
        servers = learner.server_of(new, learner.accounts.when.t_s)
        columns = (column.tolist() for column in (new, self.tasks[new], self.held.sizes[new], servers))
        for device, task, size, server, counts in zip(*columns, self.held.class_counts[new], strict=True):
            self._promises[device] = Promise(device, self.round, None, task, server, size, counts, self._build)
        return [self._promises[device] for device in ids.tolist()]

    def _build(self, promises: Sequence[Promise]) -> None:
        """Build the jobs of promises of this round, as their devices began them."""
        learning, learner, sizes = self.learning, self._learner, self.held.sizes
        accounts = learner.accounts
        local, server, ledger = accounts.local, accounts.server, accounts.local_ledger
        kinds = learning.momentum, learning.weight_decay, learning.clip_norm, learning.persist_momentum
        optimiser = Optimiser(rate_in(learning, self.round), *kinds, kind=learning.optimiser)
        ids, tasks = devices_and_tasks(promises)
        for promise, (own, seed) in zip(promises, self._drawn(ids, tasks), strict=True):
            device = promise.device
            about = Device(device, promise.samples, self.round, sizes, int(self.work.batch[device]))
            kept = learner.kept.get(device, learner.first_kept)
            given = {**server.given(self._states[promise.server], about, accounts.ledger), **kept}
            for name in local.teachers:
                if name not in given:
                    raise EdgesimError(
                        f"algorithm {learner.config.algorithm.name!r}: teachers names {name!r}, which given did not "
                        f"return for device {device} (got {', '.join(sorted(given))})"
                    )
                if not given[name].numel():
                    del given[name]
            if device in learner.carried:
                promise.sent, given["start"] = given["start"], learner.carried[device]
            samples = Samples(self.held.samples_of(device), self.federation.public, partial(self._epochs, promise))
            phases = local.phases(own, about, samples, ledger)
            passed = local.passes_over(about, samples)
            held_out = (
                self.federation.drift.held_out.of(device) if learner.accounts.measured == "held_out" else _NOTHING
            )
            more = passed, learner.velocities.get(device), held_out
            promise.built, promise.build = Job(device, self.round, seed, phases, given, optimiser, *more), None

    def _epochs(self, promise: Promise, name: str, samples: Integers, count: int, batch: int | None) -> Phase:
        """`Samples.epochs` of a device."""
        device, draw = promise.device, promise.task
        edges = epoch_edges(len(samples), count, batch or int(self.work.batch[device]))
        places = epoch_places(self.streams, name, device, draw, len(samples), count)
        public = np.isin(samples, self.federation.public).any()
        augment = "none" if public else self._learner.config.data.augment
        (changes,) = draw_changes(
            augment, self.streams, f"{name}-augmentation", [device], draw, [len(places)], self._learner.data.stored_size
        )
        ends = None if public else self._epoch_ends(edges, len(samples))
        return Phase(samples[places], edges, changes, places, bool(public), ends)

    def _epoch_ends(self, edges: Integers, size: int) -> Integers | None:
        """`Phase.epoch_ends` of steps by epochs over so many samples."""
        return None if self._learner.accounts.measured is None else np.flatnonzero(edges[1:] % size == 0) + 1

    def _drawn(self, ids: Integers, tasks: Integers) -> Iterator[tuple[Phase, int]]:
        """Phase of local training and seed of each job, of the devices ``ids`` [n] and the number ``tasks`` [n].

        All random numbers are a function of these two.
        """
        sizes = self.held.sizes[ids].tolist()
        drawn = self.batches(ids)
        counts, augment = [len(samples) for samples in drawn], self._learner.config.data.augment
        size = self._learner.data.stored_size
        changes = draw_changes(augment, self.streams, "augmentation", ids, tasks, counts, size)
        kinds = list(zip(sizes, self.work.epochs[ids].tolist(), self.work.batch[ids].tolist(), strict=True))
        device_of = dict(zip(kinds, ids.tolist(), strict=True))
        edges = {kind: self.work.step_edges(device, kind[0]) for kind, device in device_of.items()}
        seeds = self.streams.seeds("job", ids, tasks).tolist()
        for samples, kind, moves, seed in zip(drawn, kinds, changes, seeds, strict=True):
            yield Phase(samples, edges[kind], moves, epoch_ends=self._epoch_ends(edges[kind], kind[0])), seed

    def losses(self, ids: Integers) -> Floats:
        """Mean loss of the round's start model on each device's data set, [n]."""
        with self._loaded(self._start) as (model, data):
            return mean_losses(model, data, [self.held.samples_of(device) for device in ids], self._learner.cores)

    def update_norms(self, ids: Integers) -> Floats:
        """Norm of each device's update of this round, [n]; runs the jobs."""
        return np.array([result.update_norm for result in self._learner.results(self.start(np.asarray(ids)))])

    def sent_norms(self, ids: Integers, room_bits: Callable[[], Floats] | None = None) -> Floats:
        """Norm of each device's update of this round as it would be received, [n]; runs the jobs."""
        return self._learner.sent_norms(self.start(np.asarray(ids)), room_bits)

    def gradient_deviations(self, ids: Integers) -> Floats:
        """Standard deviation of per-sample gradients on each device's first batch of the round, [n]."""
        drawn = self.batches(ids)
        lengths = self.work.first_step(ids, self.held.sizes[ids]).tolist()
        firsts = [samples[:length] for samples, length in zip(drawn, lengths, strict=True)]
        # Twice the sample of a device that has but one: as in training by steps, it deviates by nothing.
        firsts = [np.resize(batch, 2) if len(batch) < 2 else batch for batch in firsts]
        with self._loaded(self._start) as (model, data):
            return gradient_deviations(model, data, firsts, self.learning.memory_budget_mib, self._learner.cores)

    def class_gradient_distances(self, ids: Integers, part: Literal["all", "last_linear"]) -> ClassGradients:
        """Distances of the devices' class gradients to the global ones, at the global model as it is now."""
        ids = np.asarray(ids, dtype=np.int64)
        sizes = self.held.sizes
        class_count = self.federation.class_count
        batches = statistics_samples(self.held, self.streams, np.arange(len(sizes)), self.tasks, self.work)
        labels = [self._learner.dataset.train_labels[batch] for batch in batches]
        counts = np.stack([np.bincount(batch, minlength=class_count) for batch in labels])
        distances = np.zeros((0, class_count))
        if len(ids):
            public = self._learner.public
            with self._loaded(self._learner.global_weights if public is None else public.weights) as (model, data):
                alpha, room = sizes / sizes.sum(), (self.learning.memory_budget_mib, self._learner.cores)
                distances = class_gradient_distances(model, data, batches, labels, alpha, ids, class_count, part, *room)
        return ClassGradients(distances, class_shares(counts[ids]), size_weighted_shares(sizes, counts))

    @contextmanager
    def _loaded(self, weights: Tensor) -> Iterator[tuple[FlatModel, DeviceData]]:
        learner = self._learner
        with reproducible(learner.torch_device):
            learner.model.load(weights)
            yield learner.model, learner.data
