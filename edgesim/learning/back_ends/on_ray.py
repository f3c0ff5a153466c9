"""The back end of a cluster of Ray: jobs spread over actors on its nodes, each trained as `loop` would.

Tensors of jobs go through Ray's object store, unlike those of whole runs: images once a node, what several jobs of a
batch are given once, and the rest with its job. At most two jobs an actor are under way, and what they brought is
copied out of the store at once. A job whose actor or node is lost is trained again on another one, by the same draws.
"""

import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from edgesim.base.errors import EdgesimError
from edgesim.base.processes import cores
from edgesim.cluster.code import packed
from edgesim.cluster.connection import connected
from edgesim.cluster.nodes import NodeShare, ask_fitting
from edgesim.config import LearningConfig
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.back_ends.job_actor import JobActor, own_tensor, own_tensors, version_here
from edgesim.learning.back_ends.job_process import Failure, order_of
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, Promise, wanted
from edgesim.learning.tensors import DeviceData

_AT_ONCE = 2
"""Most jobs at an actor: one in training, one waiting."""
_TRIES = 5
"""Most starts of a job whose actor is lost each time."""
_START_S = 90.0
"""Most seconds that actors may take to start: each loads torch first."""
_LOOK_S = 1.0
_ASK_S, _SILENT_S = 10.0, 60.0
"""Seconds between two pings of an actor at work, and seconds of silence after which it counts as lost."""
_BY = "learning.back_end = 'ray'"


@dataclass(eq=False)
class _Task:
    """A job, with its place in the order of the jobs."""

    place: int
    promise: Promise
    job: Job
    tries: int = 0


@dataclass(eq=False)
class _Actor:
    """An actor, and the answers awaited from it, as Ray's references."""

    handle: Any
    beginning: Any
    """Reference to the actor's first answer; None once it has started."""
    tasks: dict[Any, _Task] = field(default_factory=dict)
    asked: Any = None
    """Reference to the answer to a ping, if one is awaited."""
    asked_s: float = 0.0

    @property
    def awaited(self) -> list[Any]:
        return [answer for answer in (self.beginning, self.asked, *self.tasks) if answer is not None]


class RayBackEnd:
    """Runs promises on actors that live as long as the back end."""

    name = "ray"

    def __init__(
        self,
        learning: LearningConfig,
        model: FlatModel,
        data: DeviceData,
        build: Callable[[], nn.Module],
        local: LocalHalf,
        own_code: Callable[[], Mapping[str, Path]],
    ) -> None:
        """``build`` makes the module anew; like the local half, it is pickled, and ``own_code`` are files of the user's
        modules that they need.

        Raises `EdgesimError` where there is no cluster, or its nodes cannot train these jobs.
        """
        self._share = NodeShare(learning.cpus_per_actor or 1.0, learning.gpus_per_actor or 0.0)
        self._count = learning.workers
        self._device = data.device
        self._actors: list[_Actor] = []
        self._shared: dict[int, tuple[Tensor, Any]] = {}
        """Tensors in the object store and their references, by the tensor's id."""
        self._kind: str | None = None
        self._bad_starts, self._why_bad = 0, ""
        self._looked_s = self._had_actor_s = 0.0
        self._open = ExitStack()
        try:
            models = 2 * (_AT_ONCE + 1) * (learning.workers or cores()) * model.weights.nbytes
            self._ray = self._open.enter_context(connected(None, _BY, 2 * (data.nbytes + models)))
            self._check_nodes()
            parts = pickle.dumps((build, model.mixed, local))
            self._begin = packed(own_code()), parts, self._put(data.arrays()), self._share.gpus
            grouped = self._ray.remote(concurrency_groups={"pulse": 1})(JobActor)
            self._make = grouped.options(**self._share.options, max_restarts=0, max_task_retries=0)
            self._await_first()
        except BaseException:
            self.close()
            raise

    @property
    def facts(self) -> dict[str, str]:
        """Kind of torch and device on which the actors train, for ``run.json``."""
        return {"actor_kind": self._kind or ""}

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took."""
        jobs = [_Task(place, *pair) for place, pair in enumerate(wanted(promises))]
        waiting, failures = deque(jobs), dict[int, EdgesimError]()
        self._had_actor_s = time.monotonic()
        self._keep_shared([task.job for task in jobs])
        try:
            while True:
                self._look_after()
                for actor in self._actors:
                    while actor.beginning is None and len(actor.tasks) < _AT_ONCE and _is_next(waiting, failures):
                        self._send(actor, waiting.popleft())
                if not (any(actor.tasks for actor in self._actors) or _is_next(waiting, failures)):
                    break
                lost = self._listen(failures)
                waiting = deque(sorted([*lost, *waiting], key=lambda task: task.place))
        except BaseException:
            for actor in [actor for actor in self._actors if actor.tasks]:
                self._drop(actor)
            raise
        if failures:
            # All jobs before the first that failed have been run: the error is the one that `loop` would raise.
            raise failures[min(failures)]
        return len(jobs)

    def close(self) -> None:
        """End the actors, whatever they are doing."""
        for actor in [*self._actors]:
            self._drop(actor)
        self._shared.clear()
        self._open.close()

    def _check_nodes(self) -> None:
        """Raise `EdgesimError` where nodes lack the resources of the actors, or have another version of edgesim."""
        self._share.check_room(self._ray, "an actor of learning.back_end = 'ray'")
        room = self._share.room(self._ray)
        if (self._count or 0) > room:
            has = f"the Ray cluster has room for {room} that take {self._share.amounts} each"
            raise EdgesimError(f"learning.workers: {self._count} actors are wanted, and {has}")
        ask_fitting(self._ray, self._share, version_here)

    def _await_first(self) -> None:
        """Wait until all actors have begun or, for long, one of them; raises `EdgesimError`."""
        self._had_actor_s = begun_s = time.monotonic()
        self._look_after()
        while self._kind is None or any(actor.beginning is not None for actor in self._actors):
            if time.monotonic() - begun_s > _START_S and self._kind is not None:
                return
            self._listen({})
            self._look_after()

    def _look_after(self) -> None:
        """Start missing actors, and ping those at work.

        Raises `EdgesimError` where there has been no actor for long.
        """
        now_s = time.monotonic()
        if any(actor.beginning is None for actor in self._actors):
            self._had_actor_s = now_s
        elif now_s - self._had_actor_s > _START_S:
            why = f"; the last one failed to start: {self._why_bad}" if self._bad_starts else ""
            raise EdgesimError(f"{_BY}: no actor has run for {_START_S:g} s{why}")
        # After each failed start the next one comes later.
        if now_s - self._looked_s < _LOOK_S * 2 ** min(self._bad_starts, 5):
            return
        self._looked_s = now_s
        for _ in range(min(self._count or 2**31, self._share.room(self._ray)) - len(self._actors)):
            handle = self._new_actor()
            self._actors.append(_Actor(handle, handle.begin.remote(*self._begin)))
        for actor in self._actors:
            if actor.tasks and actor.asked is None and now_s - actor.asked_s > _ASK_S:
                actor.asked = actor.handle.is_there.options(concurrency_group="pulse").remote()
                actor.asked_s = now_s

    def _new_actor(self) -> Any:
        return self._make.remote()

    def _send(self, actor: _Actor, task: _Task) -> None:
        task.tries += 1
        known = [name for name, tensor in task.job.given.items() if id(tensor) in self._shared]
        tensors = [self._shared[id(task.job.given[name])][1] for name in known]
        actor.tasks[actor.handle.train.remote(order_of(task.job, known), known, *tensors)] = task
        actor.asked_s = actor.asked_s or time.monotonic()

    def _listen(self, failures: dict[int, EdgesimError]) -> list[_Task]:
        """Wait up to `_LOOK_S` for answers of actors, and process them; returns the jobs of lost actors."""
        by_answer = {answer: actor for actor in self._actors for answer in actor.awaited}
        ready: list[Any] = []
        if by_answer:
            ready, _ = self._ray.wait([*by_answer], timeout=_LOOK_S)
            ready, _ = self._ray.wait([*by_answer], num_returns=len(by_answer), timeout=0) if ready else ([], [])
        else:
            time.sleep(_LOOK_S)
        lost: list[_Task] = []
        for answer in ready:
            if (actor := by_answer[answer]) in self._actors:
                lost += self._take(actor, answer, failures)
        now_s = time.monotonic()
        for actor in [*self._actors]:
            if actor.asked is not None and now_s - actor.asked_s > _SILENT_S:
                lost += self._lost(actor, f"it has not answered for {_SILENT_S:g} s")
        return lost

    def _take(self, actor: _Actor, answer: Any, failures: dict[int, EdgesimError]) -> list[_Task]:
        """Process an answer; returns the jobs that are lost with its actor."""
        errors = self._ray.exceptions
        try:
            value = self._ray.get(answer, timeout=_SILENT_S)
        except errors.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            reason = str(cause) if isinstance(cause, EdgesimError) else f"{type(cause).__name__}: {cause}"
            if (task := actor.tasks.get(answer)) is None and self._kind is None:
                raise EdgesimError(f"{_BY}: an actor failed to start: {' '.join(reason.split())}") from None
            if task is None:
                return self._lost(actor, " ".join(reason.split()))
            where = f"while training device {task.promise.device} in round {task.promise.round}"
            raise EdgesimError(
                f"an actor of Ray ended in an error {where}: {' '.join(reason.split())}; learning.back_end = 'loop' "
                "shows it here"
            ) from None
        except (errors.RayError, errors.GetTimeoutError) as error:
            # What follows is a page of advice.
            return self._lost(actor, f"{type(error).__name__}: {' '.join(str(error).split()).partition('. ')[0]}")
        if answer is actor.beginning:
            self._has_begun(actor, value)
        elif answer is actor.asked:
            actor.asked, actor.asked_s = None, time.monotonic()
        else:
            task = actor.tasks.pop(answer)
            if isinstance(value, Failure):
                failures[task.place] = value.error
            else:
                update, rest = value
                task.promise.result = rest.result(
                    own_tensor(update, self._device), partial(own_tensors, device=self._device)
                )
        return []

    def _has_begun(self, actor: _Actor, kind: str) -> None:
        """Note that an actor has started; raises `EdgesimError` where its kind differs from those before it."""
        actor.beginning, self._bad_starts = None, 0
        if self._kind is not None and kind != self._kind:
            raise EdgesimError(
                f"actors of {_BY} are of two kinds, {self._kind} and {kind}, whose results differ in their last bits; "
                "have Ray offer nodes of one kind"
            )
        self._kind = kind

    def _lost(self, actor: _Actor, why: str) -> list[_Task]:
        """Drop a lost actor; returns its jobs, to be trained elsewhere. Raises `EdgesimError` after many tries."""
        self._drop(actor)
        if actor.beginning is not None:
            self._bad_starts, self._why_bad = self._bad_starts + 1, why
        tasks = [*actor.tasks.values()]
        for task in tasks:
            if task.tries >= _TRIES:
                job = f"the job of device {task.promise.device} in round {task.promise.round}"
                raise EdgesimError(
                    f"{job} was lost {_TRIES} times with its actor ({why}); if memory ran out, set "
                    "learning.cpus_per_actor higher, so that fewer share a node"
                )
        return tasks

    def _drop(self, actor: _Actor) -> None:
        """End an actor, which frees its memory and its part of a GPU."""
        self._actors.remove(actor)
        with suppress(Exception):
            self._ray.kill(actor.handle)

    def _keep_shared(self, jobs: Sequence[Job]) -> None:
        """Put tensors that several of these jobs are given into the object store, and drop all others from it."""
        tensors = {id(tensor): tensor for job in jobs for tensor in job.given.values()}
        times = Counter(id(tensor) for job in jobs for tensor in job.given.values())
        self._shared = {key: entry for key, entry in self._shared.items() if key in tensors}
        for key, tensor in tensors.items():
            if times[key] > 1 and key not in self._shared:
                self._shared[key] = tensor, self._put(tensor.cpu().numpy())

    def _put(self, value: object) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.put(value)
        except (errors.ObjectStoreFullError, errors.OutOfDiskError) as error:
            raise EdgesimError(
                f"{_BY}: Ray's object store on this node is full ({type(error).__name__}); give it more "
                "(ray start --object-store-memory)"
            ) from None


def _is_next(waiting: Sequence[_Task], failures: Mapping[int, EdgesimError]) -> bool:
    """Whether there is a next job to run; as in `loop`, none runs after one that failed."""
    return bool(waiting) and (not failures or waiting[0].place < min(failures))
