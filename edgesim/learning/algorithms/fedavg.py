"""Federated averaging: McMahan et al., "Communication-Efficient Learning of Deep Networks", AISTATS 2017."""

from typing import ClassVar

from edgesim.learning.algorithms.algorithm import Algorithm, Half
from edgesim.learning.algorithms.server_half import Merges, ServerHalf


class Averaging(ServerHalf):
    """The server adds the mean update, by samples."""

    merges: ClassVar[Merges] = "models"


class FedAvg(Algorithm):
    """Cross-entropy on each device; the mean update at the server."""

    Server = Averaging
    halves: ClassVar[frozenset[Half]] = frozenset({"local", "server"})
