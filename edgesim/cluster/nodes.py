"""The nodes of a cluster of Ray: what they have, how they are called, and questions to each of them."""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, NamedTuple

from edgesim.base.errors import EdgesimError

_ANSWER_S = 90.0
"""Seconds that nodes may take to answer: a new process of theirs loads edgesim first."""
_GIB = 2**30

Node = dict[str, Any]
"""A node as `ray.nodes` describes it."""


@dataclass(frozen=True)
class NodeShare:
    """Resources of a node that one run, or one actor, takes."""

    cpus: float = 1
    gpus: float = 0
    memory_gib: float = 0

    @property
    def resources(self) -> dict[str, float]:
        """The share by Ray's names of resources; memory in bytes."""
        return {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory_gib * _GIB}

    @property
    def amounts(self) -> str:
        """The share in words, for messages."""
        return _amounts(self.resources)

    @property
    def options(self) -> dict[str, Any]:
        """The share as options of Ray's tasks and actors."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "memory": self.memory_gib * _GIB or None}

    def fits(self, node: dict[str, float]) -> int:
        """Number of such shares for which a node with these resources has room."""
        return min(int(node.get(name, 0.0) / wanted + 1e-9) for name, wanted in self.resources.items() if wanted)

    def room(self, ray: Any) -> int:
        """Number of such shares for which all nodes together have room."""
        return sum(self.fits(node["Resources"]) for node in alive(ray))

    def check_room(self, ray: Any, what: str) -> None:
        """Raises `EdgesimError` with what the nodes have, where none has room for ``what``, such as a run."""
        nodes = alive(ray)
        if any(self.fits(node["Resources"]) for node in nodes):
            return
        amounts = [f"{node['NodeManagerHostname']} {_amounts(node['Resources'])}" for node in nodes[:4]]
        has = "; ".join(amounts) or "there is none"
        raise EdgesimError(f"no node of the Ray cluster has {self.amounts} for {what}: {has}")


def alive(ray: Any) -> list[Node]:
    """The nodes that are alive, to Ray's knowledge."""
    return [node for node in ray.nodes() if node["Alive"]]


def name_of(node: Node) -> str:
    """A node's name for messages."""
    return f"node {node['NodeManagerHostname']} ({node['NodeManagerAddress']})"


class Answer(NamedTuple):
    """Answer of one node to a question."""

    node: str
    """Name of the node."""
    value: Any
    """Result of the function; None where there is a fault."""
    fault: str
    """Fault of the node, as the end of a sentence; empty if there is none."""


def on_node(ray: Any, target: Callable[..., Any], node_id: str, **options: Any) -> Any:
    """Function or class of Ray's that runs on one node, or not at all, and takes no core."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    strategy = strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    return ray.remote(target).options(num_cpus=0, scheduling_strategy=strategy, **options)


def ask_all(ray: Any, nodes: Iterable[Node], question: Callable[..., Any], *arguments: Any) -> list[Answer]:
    """Call a function of edgesim on each of some nodes; nodes that are lost meanwhile are left out."""
    asked = {on_node(ray, question, node["NodeID"], max_retries=0).remote(*arguments): name_of(node) for node in nodes}
    ready, silent = ray.wait([*asked], num_returns=len(asked), timeout=_ANSWER_S)
    answers = [Answer(asked[answer], None, f"has not answered for {_ANSWER_S:g} s") for answer in silent]
    for answer in ready:
        try:
            answers.append(Answer(asked[answer], ray.get(answer, timeout=10), ""))
        except ray.exceptions.RayTaskError as error:
            why = " ".join(str(error.cause or error).split())
            answers.append(Answer(asked[answer], None, f"cannot load edgesim ({why})"))
        except ray.exceptions.RayError:
            # The node was lost meanwhile.
            continue
    return answers


def ask_fitting(
    ray: Any, share: NodeShare, question: Callable[..., tuple[str, ...]], *arguments: Any
) -> dict[str, tuple[str, ...]]:
    """Answers, of which edgesim's version is the first part, of the nodes with room for a share, by name.

    Raises `EdgesimError` naming each that has another edgesim, or none.
    """
    nodes, here = [node for node in alive(ray) if share.fits(node["Resources"])], metadata.version("edgesim")
    answers = ask_all(ray, nodes, question, *arguments)
    if wrong := [
        f"{name} {fault or f'has edgesim {answer[0]}, not {here}'}"
        for name, answer, fault in answers
        if fault or answer[0] != here
    ]:
        raise EdgesimError("Ray: " + "; ".join(sorted(wrong)))
    return {name: answer for name, answer, _ in answers}


def _amounts(resources: dict[str, float]) -> str:
    memory = resources.get("memory", 0.0) / _GIB
    amounts = [f"{resources.get('CPU', 0.0):g} CPUs", f"{resources.get('GPU', 0.0):g} GPUs", f"{memory:.3g} GiB"]
    return ", ".join(amounts)
