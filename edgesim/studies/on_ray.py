"""The executor of a Ray cluster: a task for each run of a study, which returns only the run's status.

Models, tables and checkpoints are written into the study's folder, on a path that all nodes share; if some node does
not see it, every run is written on its node and its files are fetched (`fetched`). Ray retries nothing: the runs of
a lost node are handed out once more, and resume from their checkpoints if these are on the shared path.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from edgesim.base.errors import EdgesimError
from edgesim.base.lease import Lease, Taken
from edgesim.cluster.code import packed
from edgesim.cluster.connection import connected
from edgesim.cluster.nodes import NodeShare, ask_fitting, on_node
from edgesim.folder.records import note_failure
from edgesim.screen.progress import Message
from edgesim.simulation import composition as simulation
from edgesim.simulation.complete import as_toml
from edgesim.simulation.inputs import input_digests
from edgesim.simulation.named_code import own_files
from edgesim.studies.executor import Ending, Lost, News, RunOrder, refuse_failed
from edgesim.studies.fetched import Left, clear, fetch
from edgesim.studies.on_node import Apart, Mailbox, carry_out, plan_hash, what_is_here

_EMPTY_S = 60.0
"""Seconds without room for any run, all nodes lost, after which the study ends."""


@dataclass(frozen=True)
class Ray:
    """The executor of a cluster; without an ``address`` ($RAY_ADDRESS) Ray is started on this machine alone.

    ``address`` is HOST:PORT of the head, of a cluster that this machine belongs to. Each run takes ``cpus_per_run``
    processor cores, ``gpus_per_run`` GPUs (0.25: four runs share one) and ``memory_per_run_gib``, which Ray counts but
    does not enforce, of a node.
    """

    address: str | None = None
    cpus_per_run: float = 1
    gpus_per_run: float = 0
    memory_per_run_gib: float = 0

    tries: ClassVar[int] = 5

    def __post_init__(self) -> None:
        least = {"cpus_per_run": 0.001, "gpus_per_run": 0, "memory_per_run_gib": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if not bound <= value < float("inf") or (name != "memory_per_run_gib" and value > 1 and value % 1):
                whole = "" if name == "memory_per_run_gib" else ", whole above 1"
                above = "above 0" if bound else "0 or more"
                raise EdgesimError(f"{name}: expected a number {above}{whole} (got {value!r})")

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Context in which this process is connected to the cluster; an earlier connection is used and kept.

        Raises `EdgesimError` where Ray is not installed, the address does not answer, or no node has what a run takes.
        """
        with connected(self.address, "executor ray") as ray:
            self.share.check_room(ray, "a run")
            yield

    def open(self, out: Path, count: int, jobs: int | None, again: bool) -> "ClusterTasks":
        """Tasks for the runs of a study; raises `EdgesimError` naming the nodes that could not carry them out."""
        import ray

        plan, answers = plan_hash(out), ask_fitting(ray, self.share, what_is_here, str(out.resolve()))
        blind = [name for name, (_, seen) in answers.items() if seen != plan]
        return ClusterTasks(ray, self, jobs, blind)

    @property
    def share(self) -> NodeShare:
        """Cores, GPUs and memory of a run."""
        return NodeShare(self.cpus_per_run, self.gpus_per_run, self.memory_per_run_gib)


@dataclass
class ClusterTasks:
    """Tasks of a cluster, never more than it has room for."""

    ray: Any
    executor: Ray
    jobs: int | None
    blind: list[str]
    """Nodes that do not see the study; if there are any, the files of all runs are fetched."""
    _at_work: dict[Any, RunOrder] = field(default_factory=dict)
    """Orders by Ray's references to their tasks."""
    _leases: dict[str, Lease] = field(default_factory=dict)
    """Leases of the folders of runs whose nodes do not see the study, by name."""
    _early: list[tuple[str, News]] = field(default_factory=list)
    """News of orders before their tasks were given to Ray."""
    _room: int = 0
    _looked_s: float = float("-inf")
    """Time of the last look at the cluster's room, by the monotonic clock."""
    _had_room_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._mailbox = on_node(self.ray, Mailbox, self.ray.get_runtime_context().get_node_id()).remote()
        # Ray ends the process of a task with a GPU after the task, which frees the GPU's memory.
        self._task = self.ray.remote(carry_out).options(**self.executor.share.options, max_retries=0)

    def has_room(self) -> bool:
        """Whether an order would begin at once; raises `EdgesimError` if the cluster has had no room for long."""
        now_s = time.monotonic()
        if now_s - self._looked_s > 1.0:
            self._looked_s = now_s
            self._room = self.executor.share.room(self.ray)
        if self._room:
            self._had_room_s = now_s
        elif now_s - self._had_room_s > _EMPTY_S:
            raise EdgesimError(f"the Ray cluster has had no node with room for a run for {_EMPTY_S:g} s")
        return len(self._at_work) < min(self._room, self.jobs or self._room)

    def hand_out(self, order: RunOrder) -> None:
        """Give an order to Ray as a task."""
        if self.blind and (ended := self._claimed(order)) is not None:
            self._early.append((order.folder.name, ended))
            return
        moved = replace(order, folder=order.folder.resolve())
        share = max(1, int(self.executor.cpus_per_run))
        plan = "" if self.blind else plan_hash(moved.folder.parent)
        code = packed(own_files(order.config))
        task = self._task.remote(moved, share, input_digests(order.config), self._mailbox, code, plan)
        self._at_work[task] = order

    def _claimed(self, order: RunOrder) -> Ending | None:
        """Take the lease of a run's folder that nodes do not see; returns the ending of a run that need not begin."""
        name = order.folder.name
        if name in self._leases:
            return None
        reason = f"{', '.join(self.blind[:3])} cannot see the study, so files of its runs are sent back when they end"
        self._early.append((name, Message(name, 0, 0.0, reason, "files sent back")))
        try:
            self._leases[name] = Lease(order.folder)
            refuse_failed(order)
            if simulation.why_run(order.folder, order.config, order.fresh) is not None:
                return None
            ended = Ending("finished", "finished before", reused=True)
        except Taken as taken:
            return Ending("elsewhere", str(taken))
        except EdgesimError as error:
            ended = Ending("failed", str(error))
        self._release(name)
        return ended

    def _release(self, name: str) -> None:
        if (lease := self._leases.pop(name, None)) is not None:
            lease.release()

    def news(self, timeout_s: float) -> list[tuple[str, News]]:
        """Messages and endings since the last call, by the name of the run's folder."""
        news, self._early = self._early, []
        if not self._at_work:
            time.sleep(0.0 if news else timeout_s)
            return news
        ready, _ = self.ray.wait([*self._at_work], num_returns=len(self._at_work), timeout=0)
        if not ready:
            ready, _ = self.ray.wait([*self._at_work], timeout=min(timeout_s, 0.2))
        with suppress(self.ray.exceptions.RayError):
            news += [(message.run, message) for message in self.ray.get(self._mailbox.take.remote(), timeout=1)]
        for task in ready:
            order = self._at_work.pop(task)
            outcome = self._outcome(task)
            if isinstance(outcome, Apart):
                # From now on for all runs: the node of a run is known only when the run begins.
                self.blind.append(outcome.node)
                self.hand_out(order)
                continue
            if isinstance(outcome, Left):
                outcome = self._fetched(outcome, order)
            self._release(order.folder.name)
            news.append((order.folder.name, outcome))
        return news

    def _outcome(self, task: Any) -> Ending | Lost | Left | Apart:
        errors = self.ray.exceptions
        try:
            ending: Ending | Left | Apart = self.ray.get(task, timeout=10)
        except errors.TaskCancelledError:
            return Ending("interrupted", "stopped as the study was")
        except errors.RayTaskError as error:
            return Ending("failed", f"an error in the program: {' '.join(str(error.cause or error).split())}")
        except errors.OutOfMemoryError:
            return Lost("Ray ended its process, since its node ran out of memory")
        except errors.RayError as error:
            return Lost(f"its process or node was lost ({type(error).__name__})")
        return ending

    def _fetched(self, left: Left, order: RunOrder) -> Ending | Lost:
        """Fetch the files of a run into the study; returns the run's ending."""
        ending, folder = left.ending, order.folder
        try:
            fetch(self.ray, left, folder)
            if ending.status == "failed":
                note_failure(folder, as_toml(order.config), ending.reason)
        except self.ray.exceptions.RayError as error:
            # Before OSError, since some of Ray's errors are of that kind, too: a timeout, and what a node cannot read.
            return Lost(f"its node was lost before its files were here ({type(error).__name__})")
        except OSError as error:
            ending = Ending("failed", f"{folder}: cannot be written: {error.strerror or error}")
        except EdgesimError as error:
            return Lost(str(error))
        finally:
            clear(self.ray, left)
        return ending

    def ask_to_end(self) -> None:
        """Cancel all tasks, whose runs then save a checkpoint and end."""
        for task in self._at_work:
            self.ray.cancel(task)

    def close(self) -> None:
        """Kill all tasks and release their leases."""
        for task in self._at_work:
            self.ray.cancel(task, force=True)
        for name in [*self._leases]:
            self._release(name)
        self.ray.kill(self._mailbox)
