"""Federated averaging: McMahan et al., "Communication-Efficient Learning of Deep Networks", AISTATS 2017."""

from typing import ClassVar

from edgesim.learning.algorithms.algorithm import Algorithm, Half


class FedAvg(Algorithm):
    """Cross-entropy on each device; the server adds the mean update, by samples."""

    halves: ClassVar[frozenset[Half]] = frozenset({"local", "server"})
    model_is_mean: ClassVar[bool] = True
    at_edges: ClassVar[bool] = True
    averages: ClassVar[bool] = True
