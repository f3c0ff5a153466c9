"""The stacked back end: clients as one model, with one forward and one backward pass for all of them."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.base.arrays import Integers
from edgesim.learning import dropout
from edgesim.learning.algorithms.local_half import LocalHalf, has_own
from edgesim.learning.back_ends.client_weights import ClientWeights
from edgesim.learning.back_ends.dense_chain import DenseChain
from edgesim.learning.back_ends.layers import layer_by_layer, mapped, mixes_rows
from edgesim.learning.back_ends.probe import probe
from edgesim.learning.back_ends.schedule import Schedule, make_schedule
from edgesim.learning.back_ends.stacked_objective import StackedObjective
from edgesim.learning.epoch_tests import EpochTests
from edgesim.learning.flat import FlatModel
from edgesim.learning.image_loader import ImageLoader
from edgesim.learning.jobs import Job, JobResult, OptimiserKind, Promise, diverged, wanted
from edgesim.learning.local_sgd import moving_rms
from edgesim.learning.own_passes import OwnPasses, finished
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts

#: Vectors of a client's weights held at once: start, end, weights, gradient, velocity, what a pull needs; for Adam its
#: second moments and a step beside these.
_VECTORS = {"sgd": 6, "adam": 8}

_PLANS, _MANY_ENTRIES = 8, 1 << 16
"""Schedules that are kept, since a policy takes now some devices more, now some fewer; only the last long one is."""

_Stack = list[tuple[Promise, Job]]


class StackedBackEnd:
    """Runs promises as stacks: layer by layer for chains of common layers, else by `torch.func.vmap`.

    Where rows of a batch cannot depend on each other, clients of different sizes share a stack and smaller batches are
    filled up with entries of no weight; else only clients whose steps have the same sizes are stacked. What is
    stacked with what depends on the promises and the memory budget alone.
    """

    name = "stacked"
    facts: ClassVar[Mapping[str, str]] = {}

    def __init__(self, model: FlatModel, data: DeviceData, memory_budget_mib: int, local: LocalHalf) -> None:
        """Raises `NotStackable` for a module that cannot be stacked."""
        self._model = model
        self._data = data
        self._local = local
        self._budget_mib = memory_budget_mib
        chain = layer_by_layer(model, local.features)
        self._forward = chain or mapped(model, local.features)
        self._fills_up = chain is not None and not mixes_rows(model)
        self._dense = None if model.mixed or has_own(local, "loss") else DenseChain.of(model)
        self._masks, self._row_bytes = probe(
            model, self._forward, data.image_shape, local.features, bool(local.teachers)
        )
        self._plans: dict[tuple[bytes, ...], tuple[Schedule, Tensor, Tensor]] = {}

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took."""
        jobs = wanted(promises)
        bad_steps: dict[int, int] = {}
        for stack in self._stacks(jobs):
            remedy = f"set learning.memory_budget_mib below {self._budget_mib}"
            if len(stack) == 1:
                remedy = "set learning.batch_size lower"
            with memory_lasts(f"training {len(stack)} device{'s'[: len(stack) > 1]} at once", remedy):
                bad_steps |= self._train(stack)
        for promise, job in jobs:
            if id(promise) in bad_steps:
                raise diverged(job, bad_steps[id(promise)])
        return len(jobs)

    def close(self) -> None:
        """Free the memory of the last schedules."""
        self._plans.clear()

    def _stacks(self, jobs: _Stack) -> Iterator[_Stack]:
        """Jobs that run together, each list by falling number of steps."""
        own_loss = has_own(self._local, "loss")
        places = []
        for entry in jobs:
            job, edges = entry[1], entry[1].edges
            given = sorted((name, tuple(tensor.shape)) for name, tensor in job.given.items()) if own_loss else []
            kind = b"" if self._fills_up else edges.tobytes(), given, job.changes is not None, job.rows is not None
            places.append((kind, -len(edges), job.round, job.device, edges, entry))
        places.sort(key=itemgetter(0, 1, 2, 3))
        for _, alike in itertools.groupby(places, itemgetter(0)):
            all_edges, group = zip(*[place[4:] for place in alike], strict=True)
            # From the last edge of a job to the first of the next one leads down: that is no batch.
            batch = int(np.diff(np.concatenate(all_edges)).max())
            at_once = self._clients_at_once(batch, group[0][1].optimiser.kind)
            for first in range(0, len(group), at_once):
                yield list(group[first : first + at_once])

    def _clients_at_once(self, batch: int, kind: OptimiserKind) -> int:
        weights = (_VECTORS[kind] + len(self._local.teachers)) * self._model.weights.nbytes
        # What the forward pass keeps of a row, and as much again for its gradients.
        return max(1, (self._budget_mib << 20) // (weights + 2 * batch * self._row_bytes))

    def _train(self, stack: _Stack) -> dict[int, int]:
        """Train one stack; the first step whose loss is not finite, by id of the promise."""
        model, local, jobs = self._model, self._local, [job for _, job in stack]
        # The clients of a stack share the module's counters: at a step all have seen as many batches.
        model.reset_counters()
        starts = torch.stack([job.start for job in jobs])
        schedule, places, shares = self._planned([job.edges for job in jobs], starts)
        # Of the jobs of a stack all have them or none.
        changes = [job.changes for job in jobs if job.changes is not None]
        table_rows = [job.rows for job in jobs if job.rows is not None]
        about = self._data.index(np.concatenate(table_rows))[places] if table_rows else None
        samples = np.concatenate([job.samples for job in jobs])
        loader = ImageLoader(model, self._data, samples, np.concatenate(changes) if changes else None)
        optimisers, pulls = [job.optimiser for job in jobs], [local.pull(job.given) for job in jobs]
        weights = starts.clone()
        own_loss = has_own(local, "loss")
        objective = StackedObjective(local, model, self._forward, jobs) if own_loss else None
        velocity = torch.zeros_like(starts[:, : model.trainable])
        for row, job in enumerate(jobs):
            if job.velocity is not None:
                velocity[row] = job.velocity
        clients = ClientWeights(model, starts, weights, optimisers, pulls, velocity)
        keys = self._keys(jobs, len(schedule.clients))
        edges = schedule.edges
        losses, hits = [], []
        tests = {row: EpochTests(model, self._data, job) for row, job in enumerate(jobs) if job.epochs}
        tested: list[list[float]] = [[] for _ in jobs]
        pauses = defaultdict[int, list[int]](list)
        for row, test in tests.items():
            for last in test.after:
                pauses[last].append(row)
        for chunk in loader.chunks(edges):
            origin = edges[chunk.start]
            outputs = []
            images, labels = loader.take(places[origin : edges[chunk.stop]])
            for step in chunk:
                count = schedule.clients[step]
                if count < len(clients):
                    clients = clients.narrow(count)
                part = slice(edges[step] - origin, edges[step + 1] - origin)
                rows = images[part].view(-1, count, *images.shape[1:])
                share = shares[edges[step] : edges[step + 1]]
                of_step = None if about is None else about[edges[step] : edges[step + 1]]
                loss, logits = self._step(
                    clients, rows, labels[part], share, keys[step, :count], objective, step, of_step
                )
                losses.append(loss)
                outputs.append(logits)
                for row in pauses.get(step + 1, ()):
                    clients.store_buffers()
                    model.weights.copy_(weights[row])
                    tested[row].append(tests[row].accuracy())
            hits.append(torch.cat(outputs).argmax(1) == labels)
        clients.store_buffers()
        updates = weights.sub_(starts)
        norms = torch.linalg.vector_norm(updates[:, : model.trainable], dim=1).tolist()
        single = torch.cat(losses).cpu().numpy().astype(np.float64)
        loss_by_step, square_by_step = schedule.per_step(single), schedule.per_step(single**2)
        finite = np.isfinite(loss_by_step)
        measured = schedule.sizes > 0
        for row, job in enumerate(jobs):
            if (of_own := job.measured) is not None:
                measured[row, : len(of_own)] = of_own
        loss_mean = schedule.overall(loss_by_step, measured).tolist()
        hit = torch.cat(hits).cpu().numpy()
        accuracy = schedule.hit_share(hit, measured).tolist()
        hits_of_step = np.rint(schedule.per_step(hit) * schedule.sizes).astype(np.int64)
        bad_rows = np.flatnonzero(~finite.all(axis=1)).tolist()
        for row, (promise, job) in enumerate(stack):
            if row not in bad_rows:
                rms = moving_rms(square_by_step[row, measured[row]])
                own = tuple(tested[row])
                if row in tests and not own:
                    own = tests[row].training_accuracies(schedule.sizes[row], hits_of_step[row])
                figures = loss_mean[row], accuracy[row], norms[row], rms
                trained = JobResult(updates[row], *figures, epoch_accuracies=own)
                promise.result = finished(local, OwnPasses(model, self._data, job), trained, velocity[row])
        return {id(stack[row][0]): int(np.argmin(finite[row])) + 1 for row in bad_rows}

    def _planned(self, edges: list[Integers], like: Tensor) -> tuple[Schedule, Tensor, Tensor]:
        """The schedule of jobs by their edges, and its places and shares on the device; the last few are kept."""
        key = tuple(own.tobytes() for own in edges)
        if key not in self._plans:
            schedule = make_schedule(edges)
            if len(self._plans) == _PLANS or schedule.edges[-1] > _MANY_ENTRIES:
                self._plans.clear()
            shares = torch.from_numpy(schedule.share).to(like)
            self._plans[key] = schedule, self._data.index(schedule.places), shares
        return self._plans[key]

    def _step(
        self,
        clients: ClientWeights,
        rows: Tensor,
        labels: Tensor,
        shares: Tensor,
        keys: Tensor,
        objective: StackedObjective | None,
        number: int,
        about: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """A step on images [n, S, C, H, W]: cross-entropy [n S] and logits [n S, classes].

        Labels are [n S], and so are ``shares``, their weights in the loss, and ``about``, the `Step.rows`; ``keys`` of
        dropout masks [S, calls, 2]; ``number`` is that of the step, from 0.
        """
        if self._dense is not None:
            losses, logits, gradients = self._dense.gradients(clients.tensors, rows, labels, shares)
            clients.descend(gradients)
            return losses, logits
        with self._model.autocast():
            outputs = self._forward(clients.tensors, keys, rows)
        logits = outputs.logits.flatten(0, 1)
        losses = F.cross_entropy(logits.to(self._model.dtype), labels, reduction="none")
        own = losses
        if objective is not None:
            own = objective.losses(clients.tensors, outputs, keys, rows, labels, shares, number, about)
        clients.step(own, shares)
        return losses.detach(), logits.detach()

    def _keys(self, jobs: list[Job], steps: int) -> Tensor:
        """Keys of the dropout masks, [steps, clients, masks, 2]."""
        keys = [
            dropout.key(job.seed, step, layer) for step in range(steps) for job in jobs for layer in range(self._masks)
        ]
        words = np.array(keys, dtype=np.int32).reshape(steps, len(jobs), self._masks, 2)
        return torch.from_numpy(words).to(self._data.device)
