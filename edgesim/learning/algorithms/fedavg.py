"""Federated averaging: McMahan et al., "Communication-Efficient Learning of Deep Networks", AISTATS 2017."""

from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.server_half import ServerHalf


class Averaging(ServerHalf):
    """The server adds the mean update, by samples."""

    merges = "models"


class FedAvg(Algorithm):
    """Cross-entropy on each device; the mean update at the server."""

    Server = Averaging
    halves = frozenset({"local", "server"})
