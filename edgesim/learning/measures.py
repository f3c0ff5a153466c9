"""Metrics of each test of a model beside loss, accuracy and F1, and their registry."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import Registry, first_line
from edgesim.base.validation import entry_of
from edgesim.config import EvaluationConfig, Section


@dataclass(frozen=True, eq=False)
class Tested:
    """Predictions and losses of a model on test samples [n]."""

    labels: Integers
    """True classes, [n]."""
    predicted: Integers
    """Predicted classes, [n]."""
    losses: Floats
    """Cross-entropy of each sample, [n]."""


class UndefinedError(Exception):
    """Raised by a metric that cannot be computed from what was tested; its text says why."""


class Metric(Section, ABC):
    """A measure of a model; its fields are its options."""

    @abstractmethod
    def measure(self, tested: Tested) -> float:
        """The value, a finite number; raises `UndefinedError` where there is none."""


class BalancedAccuracy(Metric):
    """Mean over the classes tested of the share of a class's samples that are hit."""

    @override
    def measure(self, tested: Tested) -> float:
        return float(np.mean(_by_class(tested)))


class WorstClass(Metric):
    """The least share of a class's samples that are hit."""

    @override
    def measure(self, tested: Tested) -> float:
        return float(np.min(_by_class(tested)))


def _by_class(tested: Tested) -> list[float]:
    hit = tested.predicted == tested.labels
    return [float(hit[tested.labels == label].mean()) for label in np.unique(tested.labels)]


_OWN: dict[str, type[Metric]] = {"balanced-accuracy": BalancedAccuracy, "worst-class": WorstClass}
METRICS = Registry("evaluation.metrics", "metrics", Metric, _OWN)


def resolve(evaluation: EvaluationConfig) -> EvaluationConfig:
    """The section with all options of its metrics; raises `EdgesimError` for an unknown name or a bad option."""
    if evaluation.metrics is None:
        return evaluation
    options = {name: metric.model_dump(exclude_none=True) for name, metric in make(evaluation).items()}
    return evaluation.model_copy(update={"metrics": options})


def make(evaluation: EvaluationConfig) -> dict[str, Metric]:
    """The metrics that a config names; raises as `resolve` does."""
    asked = (evaluation.metrics or {}).items()
    return {name: entry_of(METRICS, name, options, f"evaluation.metrics.{name}") for name, options in asked}


def measured(metrics: Mapping[str, Metric], tested: Tested) -> tuple[dict[str, float], dict[str, str]]:
    """Values by name, and why others have none; raises `EdgesimError` for a value that is no finite number."""
    values, undefined = {}, {}
    for name, metric in metrics.items():
        try:
            value = metric.measure(tested)
        except UndefinedError as why:
            undefined[name] = first_line(why)
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise EdgesimError(
                f"evaluation.metrics {name!r}: measure returned {value!r}, expected a finite number",
                "evaluation.metrics",
            )
        values[name] = float(value)
    return values, undefined
