"""Agents as policies: a network, read from a file, ranks or chooses the candidates."""

from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers, Numbers
from edgesim.base.errors import EdgesimError
from edgesim.rl.network import load
from edgesim.rl.observation import Ages, looks_at, observe
from edgesim.selection.stateless import walk
from edgesim.selection.view import Choice, Options, RoundReport, RoundView, Selector


class AgentOptions(Options):
    """Options of `Agent`."""

    file: str
    """Path of the agent's file."""


class Agent(Selector):
    """A saved agent: ``selection.policy = "edgesim.rl.Agent"`` with its ``selection.file``."""

    Options: ClassVar[type[Options]] = AgentOptions
    state: Ages

    def __init__(self, options: Any, device_count: int, class_count: int) -> None:
        """Raises `EdgesimError` if the file is none, or of another number of devices."""
        self.network = network = load(options.file, "selection.file")
        if network.devices not in (None, device_count):
            raise EdgesimError(
                f"selection.file: {options.file}: an agent for {network.devices} devices (devices.count is "
                f"{device_count}); train one for as many",
                "selection.file",
                "devices.count",
            )
        if network.action == "shares":
            raise EdgesimError(
                f"selection.file: {options.file}: an agent that shares the band, which no policy does; it can "
                "decide in episodes",
                "selection.file",
            )
        # The class names none, since its file says what it looks at.
        self.looks_at = looks_at(network.features)
        self.state = Ages(np.zeros(device_count, dtype=np.int64))

    @override
    def choose(self, view: RoundView) -> Choice:
        scores = self.network.scores(observe(view, self.network.features, self.state))
        yield from walk(ranked(view.ids, scores) if self.network.action == "rank" else chosen(view.ids, scores))

    @override
    def hear(self, report: RoundReport) -> None:
        self.state.hear(report)


def ranked(candidates: Integers, scores: Numbers) -> Integers:
    """Candidates by falling score of their devices, [N]; of equal ones the lower id comes first."""
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def chosen(candidates: Integers, scores: Numbers) -> Integers:
    """Candidates whose devices have a score above 0, [N], by their ids."""
    return candidates[np.flatnonzero(scores[candidates] > 0)]
