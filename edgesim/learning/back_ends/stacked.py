"""The stacked back end: clients as one model, with one forward and one backward pass for all of them."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.learning import dropout
from edgesim.learning.back_ends.graphs import Graphs, Recorder, Step, refusal
from edgesim.learning.back_ends.layers import layer_by_layer, mixes_rows
from edgesim.learning.back_ends.mapped import mapped
from edgesim.learning.back_ends.probe import probe
from edgesim.learning.back_ends.schedule import make_schedule
from edgesim.learning.back_ends.stack import Stack
from edgesim.learning.flat import FlatModel
from edgesim.learning.image_loader import ImageLoader
from edgesim.learning.local_sgd import moving_rms
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts
from edgesim.learning.trainer import Job, Promise, Result, diverged, wanted

#: Vectors of a client's weights held at once: start, end, weights, gradient, velocity, what a proximal term needs.
_VECTORS = 6

#: Steps that fill at most this much are replayed where they can be: an H100 or H200 moves it in some 20 microseconds
#: (3.3 to 4.8 TB/s), far less than it takes to launch the kernels of a step one by one.
_SMALL_BYTES = 64 << 20

#: Recorded steps keep stacks of at most this part of the memory budget, beside the stack that trains.
_KEPT = 1 / 8
_TRIAL_ROWS = 4


class StackedBackEnd:
    """Runs promises as stacks: layer by layer for chains of common layers, else by `torch.func.vmap`.

    Where rows of a batch cannot depend on each other, clients of different sizes share a stack and smaller batches are
    filled up with entries of no weight; else only clients whose steps have the same sizes are stacked. What is
    stacked with what depends on the promises and the memory budget alone.
    """

    name = "stacked"

    def __init__(
        self, model: FlatModel, data: DeviceData, memory_budget_mib: int, recorder: Recorder | None = None
    ) -> None:
        """Small steps of chains of layers are recorded and replayed where there is a ``recorder``.

        Raises `NotStackable` for a module that cannot be stacked.
        """
        self._model = model
        self._data = data
        self._budget_mib = memory_budget_mib
        chain = layer_by_layer(model)
        self._forward = chain or mapped(model)
        self._fills_up = chain is not None and not mixes_rows(model)
        found = probe(model, self._forward, data.image_shape)
        self._masks, self._row_bytes = found.masks, found.row_bytes
        self.notice: str | None = None
        """What the user is to hear about the back end."""
        self._graphs: Graphs | None = None
        # What else a module does, such as waiting for the GPU, may be nothing that a graph can hold.
        if recorder is not None and chain is not None and 2 * self._client_bytes(_TRIAL_ROWS) <= _SMALL_BYTES:
            self._graphs = self._make_graphs(recorder)

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
        for promise in jobs:
            if id(promise) in bad_steps:
                raise diverged(promise.job, bad_steps[id(promise)])
        return len(jobs)

    def close(self) -> None:
        """Give back what recorded steps hold."""
        self._graphs = None

    def _make_graphs(self, recorder: Recorder) -> Graphs:
        """They record nothing where a trial on two devices shows that this is better, which the notice then tells."""
        model = self._model
        rows = torch.stack([model.weights, 1.1 * model.weights])
        rates = np.full(2, 0.01), np.full(2, 0.5), np.zeros(2), np.zeros(2)
        shape = _TRIAL_ROWS, 2, *self._data.image_shape
        inputs = (
            model.inputs(torch.linspace(-1, 1, math.prod(shape)).view(-1, *shape[2:]).to(rows)).view(shape),
            torch.zeros(2 * _TRIAL_ROWS, dtype=torch.int64, device=rows.device),
            torch.full((2 * _TRIAL_ROWS,), 1 / _TRIAL_ROWS).to(rows),
            torch.zeros(2, self._masks, 2, dtype=torch.int32, device=rows.device),
        )
        with memory_lasts("trying to record a step", "set learning.back_end = 'loop'"):
            why = refusal(self._step, recorder, Stack(model, model.split(rows), *rates), *inputs)
        if why is not None:
            self.notice = f"steps are not recorded as graphs ({why})"
        return Graphs(self._step, recorder if why is None else None, int(_KEPT * (self._budget_mib << 20)))

    def _stacks(self, promises: list[Promise]) -> Iterator[list[Promise]]:
        """Promises that run together, each list by falling number of steps."""

        def kind(promise: Promise) -> bytes:
            return b"" if self._fills_up else promise.job.edges.tobytes()

        def place(promise: Promise) -> tuple[bytes, int, int, int]:
            return kind(promise), -len(promise.job.edges), promise.job.round, promise.job.device

        for _, alike in itertools.groupby(sorted(promises, key=place), kind):
            group = list(alike)
            # From the last edge of a job to the first of the next one leads down: that is no batch.
            batch = int(np.diff(np.concatenate([promise.job.edges for promise in group])).max())
            at_once = self._clients_at_once(batch)
            for first in range(0, len(group), at_once):
                yield group[first : first + at_once]

    def _clients_at_once(self, batch: int) -> int:
        return max(1, (self._budget_mib << 20) // self._client_bytes(batch))

    def _client_bytes(self, batch: int) -> int:
        weights = _VECTORS * self._model.weights.nbytes
        # What the forward pass keeps of a row, and as much again for its gradients.
        return weights + 2 * batch * self._row_bytes

    def _train(self, promises: list[Promise]) -> dict[int, int]:
        """Train one stack; the first step whose loss is not finite, by id of the promise."""
        model, jobs = self._model, [promise.job for promise in promises]
        # The clients of a stack share the module's counters: at a step all have seen as many batches.
        model.reset_counters()
        schedule = make_schedule(jobs)
        # A run augments all of its jobs or none.
        changes = [job.changes for job in jobs if job.changes is not None]
        feed = ImageLoader(
            model,
            self._data,
            np.concatenate([job.samples for job in jobs]),
            np.concatenate(changes) if changes else None,
        )
        starts = torch.stack([promise.start for promise in promises])
        ends = torch.empty_like(starts)
        stack = Stack(
            model,
            model.split(starts),
            np.array([job.lr for job in jobs]),
            np.array([job.momentum for job in jobs]),
            np.array([job.proximal for job in jobs]),
            np.array([job.weight_decay for job in jobs]),
        )
        places = self._data.index(schedule.places)
        shares = torch.from_numpy(schedule.share).to(starts)
        keys = self._keys(jobs, len(schedule.clients))
        edges = schedule.edges
        small = schedule.clients[0] * self._client_bytes(int(schedule.sizes.max())) <= _SMALL_BYTES
        graphs = self._graphs if small else None
        take_step: Step = self._step
        if graphs is not None:
            stack, take_step = graphs.settle(stack), graphs.step
        losses, hits = [], []
        for chunk in feed.chunks(edges):
            origin = edges[chunk.start]
            outputs = []
            images, labels = feed.take(places[origin : edges[chunk.stop]])
            for step in chunk:
                clients = schedule.clients[step]
                if clients < len(stack):
                    stack.write(ends[: len(stack)])
                    stack = stack.narrow(clients)
                    if graphs is not None:
                        stack = graphs.settle(stack)
                part = slice(edges[step] - origin, edges[step + 1] - origin)
                rows = images[part].view(-1, clients, *images.shape[1:])
                share = shares[edges[step] : edges[step + 1]]
                loss, logits = take_step(stack, rows, labels[part], share, keys[step, :clients])
                losses.append(loss)
                outputs.append(logits)
            hits.append(torch.cat(outputs).argmax(1) == labels)
        stack.write(ends[: len(stack)])
        updates = ends.sub_(starts)
        norms = torch.linalg.vector_norm(updates[:, : model.trainable], dim=1).tolist()
        single = torch.cat(losses).double().cpu().numpy()
        loss_by_step, square_by_step = schedule.per_step(single), schedule.per_step(single**2)
        finite = np.isfinite(loss_by_step)
        bad_steps = {id(promises[row]): int(np.argmin(finite[row])) + 1 for row in np.flatnonzero(~finite.all(axis=1))}
        loss_mean = schedule.overall(loss_by_step).tolist()
        accuracy = schedule.overall(schedule.per_step(torch.cat(hits).double().cpu().numpy())).tolist()
        for row, promise in enumerate(promises):
            if id(promise) not in bad_steps:
                loss_rms = moving_rms(square_by_step[row, : len(promise.job.edges) - 1])
                promise.result = Result(updates[row], loss_mean[row], accuracy[row], norms[row], loss_rms)
        return bad_steps

    def _step(self, stack: Stack, rows: Tensor, labels: Tensor, shares: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """A step of a stack, see `edgesim.learning.back_ends.graphs.Step`."""
        with self._model.autocast():
            logits = self._forward(stack.tensors, keys, rows).flatten(0, 1)
        losses = F.cross_entropy(logits.to(self._model.dtype), labels, reduction="none")
        stack.zero_gradient()
        losses.backward(shares)  # type: ignore[no-untyped-call]
        stack.step()
        return losses.detach(), logits.detach()

    def _keys(self, jobs: list[Job], steps: int) -> Tensor:
        """Keys of the dropout masks, [steps, clients, masks, 2]."""
        keys = [
            dropout.key(job.seed, step, layer) for step in range(steps) for job in jobs for layer in range(self._masks)
        ]
        words = np.array(keys, dtype=np.int32).reshape(steps, len(jobs), self._masks, 2)
        return torch.from_numpy(words).to(self._data.device)
