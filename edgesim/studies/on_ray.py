"""Runs of a study on a cluster of Ray: a task for each, of which only statuses come back.

Models, tables and checkpoints lie in the study's folder, on a path that all nodes share. Ray tries nothing again: what
a node takes with it when it is lost is handed out once more, and goes on from its checkpoints.
"""

import importlib
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from edgesim.analysis.runs import PLAN
from edgesim.errors import EdgesimError
from edgesim.runs.inputs import VERSION, input_digests
from edgesim.studies.executor import Ending, Lost, News, Order, run_one
from edgesim.terminal.progress import Message

_ADDRESS_S = 4.0
"""How long an address may take to answer; Ray itself would wait for minutes, and then end this process."""
_NODES_S = 90.0
"""How long nodes may take to say what they have: a new process of theirs loads edgesim first."""
_EMPTY_S = 60.0
"""How long a cluster may have no room for any run, all its nodes lost, before the study ends."""
_UNREAD = 1000
"""Messages that may wait to be shown; further ones are dropped."""
_GIB = 2**30
_STORE_BYTES = 80 * 2**20
"""Of Ray's object store, where Ray is started here: nothing is put there."""


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
        """Within this context this process is part of the cluster; one that it was part of before is left as it is.

        Raises `EdgesimError` where Ray is not installed, the address does not answer, or no node has what a run takes.
        """
        ray = _ray()
        before = ray.is_initialized()
        if not before:
            self._connect(ray)
        try:
            self._check_room(ray)
            yield
        finally:
            if not before:
                ray.shutdown()

    def open(self, out: Path, count: int, jobs: int | None, again: bool) -> "Tasks":
        """Tasks for the runs of a study; raises `EdgesimError` naming the nodes that could not carry them out."""
        ray = _ray()
        _check_nodes(ray, out.resolve())
        return Tasks(ray, self, jobs)

    def _connect(self, ray: Any) -> None:
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": "error"}
        here = {"include_dashboard": False, "object_store_memory": _STORE_BYTES} if address == "local" else {}
        if address != "local":
            _probe(address)
        # It replaces the handler with one that ends the process.
        main = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address=address, **quiet, **here)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EdgesimError(f"Ray at {address}: {' '.join(str(error).split())}") from None
        finally:
            if main:
                signal.signal(signal.SIGTERM, before)

    def _check_room(self, ray: Any) -> None:
        nodes = [node for node in ray.nodes() if node["Alive"]]
        if not any(self.fits(node["Resources"]) for node in nodes):
            told = (
                "; ".join(f"{node['NodeManagerHostname']} {_amounts(node['Resources'])}" for node in nodes[:4])
                or "there is none"
            )
            raise EdgesimError(f"no node of the Ray cluster has {_amounts(self.resources)} for a run: {told}")

    @property
    def resources(self) -> dict[str, float]:
        """What a run takes, by Ray's names."""
        return {"CPU": self.cpus_per_run, "GPU": self.gpus_per_run, "memory": self.memory_per_run_gib * _GIB}

    def fits(self, node: dict[str, float]) -> int:
        """How many runs a node has room for at once."""
        return min(int(node.get(name, 0.0) / wanted + 1e-9) for name, wanted in self.resources.items() if wanted)


@dataclass
class Tasks:
    """Tasks of a cluster, never more than it has room for."""

    ray: Any
    executor: Ray
    jobs: int | None
    _at_work: dict[Any, Order] = field(default_factory=dict)
    """Orders by what Ray answers for their tasks."""
    _room: int = 0
    _looked_s: float = float("-inf")
    """When the cluster's room was looked at, by the monotonic clock."""
    _had_room_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self.ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = self.ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        takes = self.executor.resources
        # The process of a task with a GPU ends behind it, by Ray's own rule, and so gives the GPU's memory back.
        self._task = self.ray.remote(_carry_out).options(
            num_cpus=takes["CPU"],
            num_gpus=takes["GPU"],
            memory=takes["memory"] or None,
            max_retries=0,
        )

    def has_room(self) -> bool:
        """Whether another order would be begun now; raises `EdgesimError` where a cluster has had no room for long."""
        now_s = time.monotonic()
        if now_s - self._looked_s > 1.0:
            self._looked_s = now_s
            self._room = sum(self.executor.fits(node["Resources"]) for node in self.ray.nodes() if node["Alive"])
        if self._room:
            self._had_room_s = now_s
        elif now_s - self._had_room_s > _EMPTY_S:
            raise EdgesimError(f"the Ray cluster has had no node with room for a run for {_EMPTY_S:g} s")
        return len(self._at_work) < min(self._room, self.jobs or self._room)

    def hand_out(self, order: Order) -> None:
        """Give an order to Ray."""
        moved = replace(order, folder=order.folder.resolve())
        share = max(1, int(self.executor.cpus_per_run))
        self._at_work[self._task.remote(moved, share, input_digests(order.config), self._mailbox)] = order

    def news(self, timeout_s: float) -> list[tuple[str, News]]:
        """What is new of the orders."""
        if not self._at_work:
            time.sleep(timeout_s)
            return []
        ready, _ = self.ray.wait([*self._at_work], num_returns=len(self._at_work), timeout=0)
        if not ready:
            ready, _ = self.ray.wait([*self._at_work], timeout=min(timeout_s, 0.2))
        found: list[tuple[str, News]] = []
        with suppress(self.ray.exceptions.RayError):
            found += [(said.run, said) for said in self.ray.get(self._mailbox.take.remote(), timeout=1)]
        for task in ready:
            found.append((self._at_work.pop(task).folder.name, self._outcome(task)))
        return found

    def _outcome(self, task: Any) -> Ending | Lost:
        errors = self.ray.exceptions
        try:
            ending: Ending = self.ray.get(task, timeout=10)
        except errors.TaskCancelledError:
            return Ending("interrupted", "stopped as the study was")
        except errors.RayTaskError as error:
            return Ending("failed", f"an error in the program: {' '.join(str(error.cause or error).split())}")
        except errors.OutOfMemoryError:
            return Lost("Ray ended its process, since its node ran out of memory")
        except errors.RayError as error:
            return Lost(f"its process or node was lost ({type(error).__name__})")
        return ending

    def ask_to_end(self) -> None:
        """Have all runs save themselves and end."""
        for task in self._at_work:
            self.ray.cancel(task)

    def close(self) -> None:
        """End all tasks, whatever they do."""
        for task in self._at_work:
            self.ray.cancel(task, force=True)
        self.ray.kill(self._mailbox)


class _Mailbox:
    """News that wait to be shown, in a process beside that of the study."""

    def __init__(self) -> None:
        self.unread: deque[Message] = deque(maxlen=_UNREAD)

    def put(self, message: Message) -> None:
        self.unread.append(message)

    def take(self) -> list[Message]:
        taken = [*self.unread]
        self.unread.clear()
        return taken


def _carry_out(order: Order, share: int, digests: dict[str, str], mailbox: Any) -> Ending:
    """On a node: one run, unless its files or code are others here than where the study is."""
    own = input_digests(order.config)
    for key in (*digests, *own):
        if digests.get(key) != own.get(key):
            what = f"edgesim {own.get(key)}, not {digests.get(key)}" if key == VERSION else f"another {key}"
            return Ending("failed", f"node {socket.gethostname()} has {what}", fields=(key,))
    return run_one(order, share, mailbox.put.remote)


def _ray() -> Any:
    """The library; raises `EdgesimError` where it is missing."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise EdgesimError("--executor ray: needs Ray; pip install 'edgesim[ray]', here and on all nodes") from None


def _probe(address: str) -> None:
    """Raises `EdgesimError` if nothing listens at an address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16 or "/" in host:
        raise EdgesimError(f"--address {address}: expected HOST:PORT of the head of a Ray cluster, such as node1:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ADDRESS_S).close()
    except OSError as error:
        why = str(error.strerror or error)
        raise EdgesimError(f"--address {address}: no Ray cluster answers there ({why}); ray start --head") from None


def _check_nodes(ray: Any, out: Path) -> None:
    """Raises `EdgesimError` naming each node that has another edgesim, or does not see a study's folder."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(_what_is_here)
    nodes = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
    asked = {
        ask.options(
            num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(each, soft=False)
        ).remote(str(out)): node
        for each, node in nodes.items()
    }
    ready, silent = ray.wait([*asked], num_returns=len(asked), timeout=_NODES_S)
    version_here, plan_here = metadata.version("edgesim"), _plan_hash(out)
    wrong = [f"{_called(asked[each])} has not answered for {_NODES_S:g} s" for each in silent]
    for each in ready:
        try:
            version, plan = ray.get(each, timeout=10)
        except ray.exceptions.RayTaskError as error:
            wrong.append(f"{_called(asked[each])} cannot load edgesim ({' '.join(str(error.cause or error).split())})")
        except ray.exceptions.RayError:
            # It was lost meanwhile.
            continue
        else:
            if version != version_here:
                wrong.append(f"{_called(asked[each])} has edgesim {version}, not {version_here}")
            elif plan != plan_here:
                wrong.append(f"{_called(asked[each])} does not see the study in {out}, which all nodes are to share")
    if wrong:
        raise EdgesimError("Ray: " + "; ".join(sorted(wrong)))


def _what_is_here(out: str) -> tuple[str, str]:
    """Of a node: its version of edgesim, and the hash of the plan that it sees in a study's folder."""
    return metadata.version("edgesim"), _plan_hash(Path(out))


def _plan_hash(out: Path) -> str:
    """SHA-256 of a study's plan; empty where there is none to be seen."""
    try:
        return sha256((out / PLAN).read_bytes()).hexdigest()
    except OSError:
        return ""


def _called(node: dict[str, Any]) -> str:
    return f"node {node['NodeManagerHostname']} ({node['NodeManagerAddress']})"


def _amounts(resources: dict[str, float]) -> str:
    memory = resources.get("memory", 0.0) / _GIB
    told = [f"{resources.get('CPU', 0.0):g} CPUs", f"{resources.get('GPU', 0.0):g} GPUs", f"{memory:.3g} GiB"]
    return ", ".join(told)
