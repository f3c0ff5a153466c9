"""CFeD: Ma et al., "Continual Federated Learning Based on Knowledge Distillation", IJCAI 2022.

Rounds are divided into tasks. From the second task on some devices of a round learn from their own data, and the others
review: on public images they learn the outputs of the model at the end of the task before.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import Count, Factor
from edgesim.learning.algorithms.algorithm import Algorithm, Options
from edgesim.learning.algorithms.distillation import soft_cross_entropy
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import (
    Arrivals,
    Device,
    Devices,
    Phase,
    Samples,
    Sizes,
    State,
    Step,
    Workbench,
)
from edgesim.learning.algorithms.server_half import EQUAL, ServerHalf
from edgesim.learning.torch_types import Tensor, torch


class CfedOptions(Options):
    """Options of CFeD."""

    task_rounds: Count = Field(10, ge=1)
    """Rounds, or models, after which a task ends; it ends with a frame of the data, too."""
    learners: float = Field(0.6, gt=0, le=1)
    """Share of the devices scheduled in a round that learn, rounded up; the others review."""
    review_epochs: Count | None = Field(None, ge=1)
    """Epochs of a review; as many as learners train, rounded up, when absent."""
    review_batch: Count | None = Field(None, ge=1)
    """Images of a step of a review; as many as in a device's own training when absent (the paper: 128)."""
    strength: Factor = Field(0.1, ge=0)
    """Weight of the distance to the teacher, the whole loss of a review."""
    T: Factor = Field(2.0, gt=0)
    """Temperature by which the logits of both models are divided."""
    server_passes: Count = Field(0, ge=0)
    """Passes of the server over its own public images, on which it distils the received models into the new one."""


@dataclass
class TaskState(State):
    """The model and the first round of the present task; ``shared`` has the task's teacher, if any."""

    since: int = 0
    """First round of the task; 0 before the first task begins."""
    before: Tensor | None = None
    """Model before the last merge, [P]; None without distillation at the server."""


@dataclass
class Roles:
    """Roles of the devices in the round in which they began last, and their teachers."""

    first: int
    """The first round of the frame."""
    began: Integers
    """The round in which each device began last, [N]; 0 before it has."""
    learns: Booleans
    """Whether each device learns in the round in which it began last, [N]."""
    teacher_of: Integers
    """The first round of the task whose teacher each device has, [N]; 0 for none."""
    round: int = 0
    """The round in which devices began last."""
    begun: int = 0
    """Devices that have begun in that round."""
    learning: int = 0
    """Devices that have begun in that round and learn."""


class CfedLocal(LocalHalf):
    """Devices that learn, or review: they distil the model of the task before.

    Roles are settled when devices begin to work: of the n that have begun in a round so far, ceil(.6 n) learn, where
    those that begin at once draw lots. In rounds the devices that are scheduled begin at once (with
    ``round.computes = "candidates"`` all candidates do); under ``buffered`` they begin one by one, in the order of the
    policy. What is planned before, deadlines and bands, is planned on the more that either role may cost, so that
    nobody comes late because of the role; what happens is charged by role. A device has a teacher when the server has
    merged one of its reviews in the task.
    """

    teachers = ("teacher",)

    @override
    def begin(self, devices: Devices, round: int, ledger: Roles) -> None:
        """Draw the devices that learn; a device that begins a second time in a round keeps its role."""
        new = devices.ids[ledger.began[devices.ids] != round]
        if ledger.round != round:
            ledger.round, ledger.begun, ledger.learning = round, 0, 0
        ledger.begun += len(new)
        learning = ledger.begun
        if _task(self, round, ledger):
            learning = math.ceil(self.options.learners * ledger.begun - 1e-9)
        order = np.argsort(self.streams.uniform("roles", new, round), kind="stable")
        ledger.began[new], ledger.learns[new] = round, False
        ledger.learns[new[order[: learning - ledger.learning]]] = True
        ledger.learning = learning

    @override
    def compute_factor(self, devices: Devices, samples: Integers, round: int, ledger: Roles) -> Floats:
        """Learners 1; reviewers 4 E_r m / (3 E n_i), with m public images and E n_i samples of a learner, [n]."""
        images = _first(self.sizes, devices.ids + 1) - _first(self.sizes, devices.ids)
        review = 4 * self._review_epochs(samples, devices.sizes) * images / (3 * samples)
        planned = np.where(_is_settled(devices, round, ledger), review, np.maximum(review, 1))
        return np.where(_may_review(self, devices, round, ledger), planned, 1.0)

    def _review_epochs(self, samples: Integers, sizes: Integers) -> Integers:
        """E_r of jobs on so many ``samples`` [n] of data sets of ``sizes`` [n], [n]."""
        if self.options.review_epochs is not None:
            return np.full(len(samples), self.options.review_epochs)
        return -(-samples // sizes)

    @override
    def phases(self, own: Phase, device: Device, samples: Samples, ledger: Roles) -> tuple[Phase, ...]:
        """Learners train as the config asks for, reviewers on the public images of their own."""
        if ledger.learns[device.id]:
            return (own,)
        (epochs,) = self._review_epochs(np.array([len(own.samples)]), np.array([device.samples])).tolist()
        shard = _shard(self.sizes, device.id, samples.public)
        return (samples.epochs("review", shard, epochs, self.options.review_batch),)

    @override
    def loss(self, step: Step) -> Tensor:
        """Learners: cross-entropy; reviewers: the strength times the distance to the teacher's logits, [n]."""
        if "teacher" not in step.teachers:
            return super().loss(step)
        distance = soft_cross_entropy(step.teachers["teacher"].logits, step.own.logits, self.options.T)
        reviewed: Tensor = self.options.strength * distance
        return reviewed


class CfedServer(ServerHalf):
    """FedAvg's server with equal weights, which sends the model of the task before.

    State and roles start anew in each frame.
    """

    merges = "models and more"
    weighs_by = EQUAL

    @override
    def ledger(self, round: int, last: Roles | None) -> Roles:
        """Roles of devices that have not begun and have no teacher."""
        none = np.zeros(self.sizes.devices, dtype=np.int64)
        return Roles(round, none, none > 0, none.copy())

    @override
    def note(self, ledger: Roles, arrived: Arrivals) -> Floats:
        """Devices whose reviews are merged have the teacher of the task in which they began."""
        for device, began in zip(arrived.ids.tolist(), arrived.began_in.tolist(), strict=True):
            if ledger.began[device] == began and not ledger.learns[device]:
                ledger.teacher_of[device] = _task(self, began, ledger)
        return super().note(ledger, arrived)

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Roles) -> Floats:
        """The model and, for a reviewer that does not have it, the teacher, [n]."""
        lacks = ledger.teacher_of[devices.ids] != _task(self, round, ledger)
        teachers = _may_review(self, devices, round, ledger) & lacks
        return np.asarray(super().download_bits(devices, round, ledger) * (1 + teachers))

    @override
    def start(self, weights: Tensor, bench: Workbench) -> TaskState:
        """A state without a teacher."""
        return TaskState(weights)

    @override
    def prepare(self, state: TaskState, bench: Workbench) -> TaskState:
        """Make the model the teacher of a task that begins, unless nothing was trained before; frames begin tasks."""
        if state.since and not bench.opens_frame and bench.round - state.since < self.options.task_rounds:
            return state
        return replace(state, since=bench.round, shared={"teacher": state.weights} if bench.round > 1 else {})

    @override
    def given(self, state: State, device: Device, ledger: Roles) -> dict[str, Tensor]:
        """The model, and for reviewers the teacher."""
        if ledger.learns[device.id]:
            return {"start": state.weights, "teacher": state.weights.new_empty(0)}
        teacher = state.shared["teacher"]
        has_it = ledger.teacher_of[device.id] == _task(self, device.round, ledger)
        # A tensor that is not sent must be no tensor of `shared`.
        return {"start": state.weights, "teacher": teacher.detach() if has_it else teacher}

    @override
    def merge(self, state: TaskState, arrived: Arrivals, alpha: Floats, ledger: Roles) -> State:
        """FedAvg's, learners and reviewers alike."""
        before = state.weights if self.options.server_passes else None
        return super().merge(replace(state, before=before), arrived, alpha, ledger)

    @override
    def refine(self, state: TaskState, arrived: Arrivals, ledger: Roles, bench: Workbench) -> State:
        """Distil the received models and the one before into the new one, each image of a pass from one of them.

        Image j of pass e is taught by model (e n + j) mod (S + 1) of the received ones by id and the one before.
        """
        options, before = self.options, state.before
        if not options.server_passes or before is None:
            return state
        shard = _shard(self.sizes, self.sizes.devices, bench.public)
        turns = np.arange(options.server_passes * len(shard))
        rows = np.argsort(arrived.ids, kind="stable").tolist()
        taught = state.weights.new_empty((len(turns), self.sizes.classes))
        for number in range(min(len(rows) + 1, len(turns))):
            own = turns[number :: len(rows) + 1]
            model = before if number == len(rows) else arrived.starts[rows[number]] + arrived.separate[rows[number]]
            (outputs,) = bench.outputs(model, [shard[own % len(shard)]])
            taught[torch.from_numpy(own).to(taught.device)] = outputs.logits
        batches = [batch for of_pass in turns.reshape(-1, len(shard)) for batch in bench.batches(of_pass)]

        def loss(own: Tensor, step: int) -> Tensor:
            by = taught[batches[step][0] : batches[step][-1] + 1]
            distance: Tensor = options.strength * soft_cross_entropy(by, own, options.T).mean()
            return distance

        return replace(state, weights=bench.fit(state.weights, [shard[batch % len(shard)] for batch in batches], loss))


class Cfed(Algorithm):
    """FedAvg with equal weights, where some devices of a round distil instead of learning."""

    Options = CfedOptions
    Local = CfedLocal
    Server = CfedServer
    needs = frozenset({"joint merges", "merges in all rounds", "public images", "data set"})

    @classmethod
    @override
    def check(cls, options: CfedOptions, sizes: Sizes) -> None:
        """Refuse shards without an image."""
        public, shards = sizes.public, sizes.devices + 1
        if public < shards:
            raise EdgesimError(
                f"algorithm.name: 'cfed' divides the {public} public images among {shards - 1} devices and the server; "
                f"give at least {shards} (data.public_per_class), or fewer devices (devices.count)",
                "algorithm.name",
                "data.public_per_class",
                "devices.count",
            )

    @classmethod
    @override
    def epochs_over(cls, options: CfedOptions, sizes: Sizes, held: Integers) -> list[tuple[int, int | None]]:
        """The shards of the devices and, if the server makes passes over it, the server's."""
        every = np.arange(sizes.devices + 1)
        *shards, server = (int(size) for size in _first(sizes, every + 1) - _first(sizes, every))
        reviews: list[tuple[int, int | None]] = [(size, options.review_batch) for size in shards]
        return [*reviews, (server, None)] if options.server_passes else reviews


def _task(half: LocalHalf | ServerHalf, round: int, ledger: Roles) -> int:
    """The first round of the task of a round; 0 in the first task of the run, which has no teacher."""
    since = round - (round - ledger.first) % half.options.task_rounds
    return since if since > 1 else 0


def _is_settled(devices: Devices, round: int, ledger: Roles) -> Booleans:
    """Whether the role of each device in a round is settled, [n]."""
    return np.asarray(ledger.began[devices.ids] == round)


def _may_review(half: LocalHalf | ServerHalf, devices: Devices, round: int, ledger: Roles) -> Booleans:
    """Whether each device reviews in a round or, before its role is settled, may come to do so, [n]."""
    settled = _is_settled(devices, round, ledger)
    return np.where(settled, ~ledger.learns[devices.ids], _task(half, round, ledger) > 0)


def _first(sizes: Sizes, numbers: Integers) -> Integers:
    """First place of the devices' shards among the public images, [n]; the server's shard has number N."""
    size, larger = divmod(sizes.public, sizes.devices + 1)
    return np.asarray(size * numbers + np.minimum(numbers, larger))


def _shard(sizes: Sizes, number: int, public: Integers) -> Integers:
    """The public images of one device, or of the server."""
    first, stop = _first(sizes, np.array([number, number + 1])).tolist()
    return public[first:stop]
