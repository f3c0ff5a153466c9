"""Functions that a study calls on the nodes of a Ray cluster: carry out a run, and report version and plan."""

import socket
from collections import deque
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from edgesim.analysis.runs import PLAN
from edgesim.cluster.code import Code, place
from edgesim.screen.progress import Message
from edgesim.simulation.inputs import VERSION, input_digests
from edgesim.studies.executor import Ending, RunOrder, run_one
from edgesim.studies.fetched import Left, run_apart

_UNREAD = 1000
"""Messages that may wait to be shown; further ones are dropped."""


class Apart(NamedTuple):
    """Answer of a node that does not see the study's folder."""

    node: str


class Mailbox:
    """Queue of messages to show, in a process beside that of the study."""

    def __init__(self) -> None:
        self.unread: deque[Message] = deque(maxlen=_UNREAD)

    def put(self, message: Message) -> None:
        """Append a message."""
        self.unread.append(message)

    def take(self) -> list[Message]:
        """Return all messages and empty the queue."""
        messages = [*self.unread]
        self.unread.clear()
        return messages


def carry_out(
    order: RunOrder, share: int, digests: dict[str, str], mailbox: Any, code: Code, plan: str
) -> Ending | Left | Apart:
    """Carry out a run on a node, unless the node's files or code differ from those of the study's machine.

    ``plan`` is the hash of the study's plan; empty if the run's files are to be sent back.
    """
    if plan and plan_hash(order.folder.parent) != plan:
        return Apart(f"node {socket.gethostname()}")
    place(code)
    own = input_digests(order.config, when_loaded=True)
    for key in (*digests, *own):
        if digests.get(key) != own.get(key):
            what = f"edgesim {own.get(key)}, not {digests.get(key)}" if key == VERSION else f"another {key}"
            return Ending("failed", f"node {socket.gethostname()} has {what}", fields=(key,))
    if not plan:
        return run_apart(order, share, mailbox.put.remote)
    return run_one(order, share, mailbox.put.remote)


def what_is_here(out: str) -> tuple[str, str]:
    """Version of edgesim on a node, and hash of the plan that the node sees in a study's folder."""
    return metadata.version("edgesim"), plan_hash(Path(out))


def plan_hash(out: Path) -> str:
    """SHA-256 of a study's plan; empty if it cannot be read."""
    try:
        return sha256((out / PLAN).read_bytes()).hexdigest()
    except OSError:
        return ""
