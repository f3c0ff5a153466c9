"""FedCGD (arXiv 2506.07581), as FedTeddi compares against it.

The abstract's objective, weighted earth mover's distance plus sampling variance, is FedTeddi's without drift;
the original's own solver may differ from the greedy used here.
"""

from typing import Any, ClassVar

from edgesim.selection import view
from edgesim.selection.fedteddi import FedTeddi, FedTeddiOptions, GreedyOptions


class FedCgd(FedTeddi):
    """FedTeddi's greedy with lambda 0."""

    Options: ClassVar[type[view.Options]] = GreedyOptions

    def __init__(self, options: Any, device_count: int, class_count: int) -> None:
        super().__init__(FedTeddiOptions(lambda_0=0.0, **options.model_dump()), device_count, class_count)
