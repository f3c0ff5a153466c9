"""The back end of several processes: jobs spread over workers of one thread each, as `loop` would run them."""

import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import ClassVar

import torch
from torch import Tensor, multiprocessing, nn

from edgesim.base.errors import EdgesimError
from edgesim.base.processes import start_process, uninterrupted
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.back_ends.job_process import Failure, ProcessShare, Report, order_of, send, serve, tensors_of
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, Promise, wanted
from edgesim.learning.tensors import DeviceData


@dataclass(eq=False)
class _Worker:
    number: int
    process: BaseProcess
    connection: Connection
    start: Tensor
    """Shared memory in which the worker finds the start weights of its job, [P]."""
    update: Tensor
    """Shared memory into which the worker writes a result, [P]."""
    started: bool = False
    at_work: tuple[int, tuple[Promise, Job]] | None = None
    """Job that the worker trains, with its place in the order of the jobs."""


class NoSharedMemory(EdgesimError):  # noqa: N818 - reads as a finding
    """Raised where the shared memory of the machine is too small for images and models of the workers."""


class WorkersBackEnd:
    """Runs promises on processes that live as long as the back end.

    The training data, the start weights and the updates are in shared memory; what else a job is given and brings goes
    through a pipe. Until the first worker has started this process trains by itself; which process trains a job
    changes no bit of its result.
    """

    name = "workers"
    facts: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, model: FlatModel, data: DeviceData, build: Callable[[], nn.Module], count: int, local: LocalHalf
    ) -> None:
        """``build`` makes the module anew; like the local half, it is pickled.

        Raises `EdgesimError` where no process can be started, and `NoSharedMemory`.
        """
        if multiprocessing.current_process().daemon:
            raise EdgesimError("learning.back_end: 'workers' cannot be used in a daemonic process; use 'loop'")
        self._loop = LoopBackEnd(model, data, local)
        self._workers: list[_Worker] = []
        self._end = weakref.finalize(self, _end, self._workers)
        try:
            for number in range(1, count + 1):
                start, update = (torch.empty_like(model.weights).share_memory_() for _ in range(2))  # type: ignore[no-untyped-call]
                share = ProcessShare(build, data, model.mixed, local, start, update)
                with uninterrupted():
                    process, connection = start_process(serve, share, name=f"edgesim worker {number}", daemon=True)
                    self._workers.append(_Worker(number, process, connection, start, update))
        except RuntimeError as error:
            self.close()
            # Torch names the file that did not become as large as it should, in several sentences.
            if "</torch_" not in str(error):
                raise
            needed_mib = (data.nbytes + 2 * count * model.weights.nbytes) / 2**20
            raise NoSharedMemory(
                f"{count} workers need {needed_mib:,.0f} MiB of shared memory for images and models, more than is "
                "free; give more (docker run --shm-size), or set learning.back_end = 'loop'"
            ) from None

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took."""
        jobs = wanted(promises)
        waiting = deque(enumerate(jobs))
        failures: dict[int, EdgesimError] = {}
        while True:
            for worker in self._workers:
                if worker.started and worker.at_work is None and waiting and not failures:
                    self._send(worker, waiting.popleft())
            busy = [worker for worker in self._workers if worker.at_work]
            if not busy and (failures or not waiting):
                break
            if not busy:
                _, (promise, job) = waiting.popleft()
                promise.result = self._loop.train(job)
            # While no process is at work, see which have started since; else sleep until a message arrives.
            for worker in self._heard(None if busy else 0):
                self._receive(worker, failures)
        if failures:
            # All jobs before the first that failed have been run: the error is the one that `loop` would raise.
            raise failures[min(failures)]
        return len(jobs)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._end()

    def _heard(self, timeout_s: float | None) -> list[_Worker]:
        """Workers that have sent something, or ended."""
        by_connection = {worker.connection: worker for worker in self._workers}
        return [by_connection[ready] for ready in wait(list(by_connection), timeout_s) if isinstance(ready, Connection)]

    def _send(self, worker: _Worker, task: tuple[int, tuple[Promise, Job]]) -> None:
        worker.at_work = task
        _, (_, job) = task
        worker.start.copy_(job.start)
        try:
            send(worker.connection, order_of(job, ["start"]))
        except OSError:
            raise self._lost(worker) from None

    def _receive(self, worker: _Worker, failures: dict[int, EdgesimError]) -> None:
        try:
            report: Report = worker.connection.recv()
        except (EOFError, OSError):
            raise self._lost(worker) from None
        if report == "ready":
            worker.started = True
            return
        assert worker.at_work is not None
        order, (promise, _) = worker.at_work
        worker.at_work = None
        if isinstance(report, Failure):
            failures[order] = report.error
        else:
            promise.result = report.result(worker.update.clone(), tensors_of)

    def _lost(self, worker: _Worker) -> EdgesimError:
        """The error for a worker that has ended; the others are ended too."""
        # Its connection is closed, the process itself may take seconds to go on a busy machine.
        worker.process.join(30)
        code = worker.process.exitcode
        who = f"worker {worker.number} of {len(self._workers)} (process {worker.process.pid})"
        self.close()
        doing = ""
        if worker.at_work:
            _, (promise, _) = worker.at_work
            doing = f" while training device {promise.device} in round {promise.round}"
        if not worker.started:
            doing = " before it started"
        if code is not None and code < 0:
            return EdgesimError(
                f"{who} was killed by signal {-code}{doing}; if memory ran out, set learning.workers lower or "
                "learning.back_end = 'loop'"
            )
        guard = "" if worker.started else "is edgesim called outside of if __name__ == '__main__'? "
        return EdgesimError(
            f"{who} ended with status {code}{doing}; {guard}see its error above; "
            "learning.back_end = 'loop' shows it here"
        )


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()
        worker.connection.close()
