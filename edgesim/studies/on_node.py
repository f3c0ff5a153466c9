"""What nodes of a cluster of Ray are asked for a study: to carry out a run, and whether they could."""

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
from edgesim.studies.sent_back import Left, run_apart

_UNREAD = 1000
"""Messages that may wait to be shown; further ones are dropped."""


class Apart(NamedTuple):
    """That a node does not see the study."""

    node: str


class Mailbox:
    """News that wait to be shown, in a process beside that of the study."""

    def __init__(self) -> None:
        self.unread: deque[Message] = deque(maxlen=_UNREAD)

    def put(self, message: Message) -> None:
        """Add one."""
        self.unread.append(message)

    def take(self) -> list[Message]:
        """All of them, which then wait no longer."""
        taken = [*self.unread]
        self.unread.clear()
        return taken


def carry_out(
    order: RunOrder, share: int, digests: dict[str, str], mailbox: Any, code: Code, plan: str
) -> Ending | Left | Apart:
    """On a node: one run, unless its files or code are others here than where the study is.

    ``plan`` is the hash of the plan that the study's folder has, or empty where the run's files are to be sent back.
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
    """Of a node: its version of edgesim, and the hash of the plan that it sees in a study's folder."""
    return metadata.version("edgesim"), plan_hash(Path(out))


def plan_hash(out: Path) -> str:
    """SHA-256 of a study's plan; empty where there is none to be seen."""
    try:
        return sha256((out / PLAN).read_bytes()).hexdigest()
    except OSError:
        return ""
