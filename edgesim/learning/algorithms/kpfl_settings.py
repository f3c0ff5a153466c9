"""KPFL's options: its program's defaults, and those that its paper tuned for each algorithm and law of participation.

The latter (DPFL, ``hyper_config.json``) were tuned per cell, on the test accuracy of a ResNet-10 on Office-Caltech-10
or CIFAR-10.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from edgesim.base.quantities import Count, Factor, Seconds
from edgesim.base.validation import validate
from edgesim.learning.algorithms.algorithm import Options


class KpflOptions(Options):
    """Options of KPFL; by default those that its program calls default."""

    keep: Literal["improved", "first"] = "improved"
    """Model that is sent: the distilled one (Theta'), or the pool's average alone (Theta), without a generator."""
    settings: Literal["default", "paper"] = "default"
    """``paper``: options that are not given are those that the paper tuned for the run's algorithm and law of
    participation (`edgesim.learning.algorithms.kpfl_settings`)."""
    age_active: float = Field(0.16, ge=-20, le=20)
    """lambda_aa: a device that has been merged a times in succession counts e^(a age_active)."""
    age_idle: float = Field(0.2, ge=-20, le=20)
    """lambda_ia: one that was not in the last i merges counts e^(i age_idle)."""
    generator_steps: Count = Field(8, ge=1)
    """Steps in which the generator is trained, each round."""
    distil_steps: Count = Field(4, ge=1)
    """Steps in which the average then learns from the pool."""
    batch: Count = Field(128, ge=2)
    """Images of a step of either kind."""
    ce: Factor = Field(5.0, ge=0)
    """Weight of the pool's cross-entropy in the generator's objective."""
    contrast: Factor = Field(8.0, ge=0)
    """Weight of the contrast between classes, in the average's features, in the generator's objective."""
    diversity: Factor = Field(7.0, ge=0)
    """Weight of the images' likeness in the generator's objective."""
    T: Factor = Field(10.0, gt=0)
    """Temperature of the contrast."""
    validation_accept: bool = False
    """Whether the distilled model is taken only where it classifies more of the server's own images correctly than the
    average does (``data.validation_per_class``). The paper's program takes images of all devices, which no server
    has."""
    server_s_per_step: Seconds = Field(0.0, ge=0)
    """Simulated seconds that the server takes for a step of either kind; in the paper none."""


_NAMES = ("generator_steps", "distil_steps", "contrast", "ce", "diversity", "T", "age_active", "age_idle")

LAWS = {"always": "static", "bernoulli": "timed-random", "markov": "Markov"}
"""Models of presence and the paper's words for them; others have no settings of their own."""

_DEFAULT = (8, 4, 8.0, 5.0, 7.0, 10.0, 0.16, 0.2)
_OFFICE_CALTECH = {
    "fedavg": (
        (8, 5, 6.0, 6.0, 3.0, 40.0, 0.0, 0.0),
        (8, 4, 8.0, 5.0, 7.0, 10.0, 0.02, -0.18),
        (5, 3, 3.0, 5.0, 9.0, 40.0, 0.16, 0.2),
    ),
    "fedprox": (
        (8, 4, 8.0, 5.0, 7.0, 10.0, 0.02, -0.18),
        (8, 4, 8.0, 5.0, 7.0, 10.0, 0.02, -0.18),
        (5, 3, 3.0, 5.0, 9.0, 40.0, 0.16, 0.2),
    ),
    "scaffold": (
        (9, 3, 5.0, 6.0, 1.0, 10.0, 0.0, 0.0),
        (10, 3, 8.0, 6.0, 2.0, 40.0, -0.14, -0.08),
        (9, 3, 1.0, 6.0, 7.0, 10.0, 0.2, 0.16),
    ),
    "fedmd": (
        (2, 4, 3.0, 3.0, 3.0, 40.0, 0.0, 0.0),
        (5, 1, 2.0, 9.0, 6.0, 40.0, -0.04, -0.16),
        (5, 4, 5.0, 3.0, 8.0, 50.0, -0.06, 0.12),
    ),
    "fedgen": (
        (8, 1, 6.0, 4.0, 2.0, 30.0, 0.0, 0.0),
        (4, 2, 3.0, 6.0, 6.0, 30.0, -0.1, 0.12),
        (9, 4, 7.0, 6.0, 4.0, 30.0, 0.04, -0.16),
    ),
    "moon": (
        (3, 3, 9.0, 3.0, 2.0, 10.0, 0.0, 0.0),
        (6, 1, 7.0, 4.0, 6.0, 50.0, -0.2, -0.14),
        (3, 1, 9.0, 3.0, 4.0, 40.0, 0.16, 0.06),
    ),
    "fpl": (
        (7, 4, 4.0, 6.0, 10.0, 30.0, 0.0, 0.0),
        (1, 2, 7.0, 1.0, 4.0, 1.0, 0.04, -0.06),
        (9, 2, 10.0, 4.0, 10.0, 50.0, -0.08, -0.14),
    ),
    "flwf": (
        (3, 3, 8.0, 5.0, 9.0, 20.0, 0.0, 0.0),
        (7, 1, 3.0, 3.0, 6.0, 20.0, -0.04, 0.1),
        (9, 2, 3.0, 3.0, 8.0, 20.0, 0.16, -0.12),
    ),
    "cfed": (
        (7, 2, 3.0, 5.0, 4.0, 40.0, 0.0, 0.0),
        (7, 1, 3.0, 3.0, 6.0, 20.0, -0.04, 0.1),
        (7, 1, 3.0, 3.0, 6.0, 20.0, -0.04, 0.1),
    ),
}
"""Tuned options by algorithm, for the three laws of `LAWS` in their order."""
_CIFAR10 = {
    "fedprox": (
        (9, 2, 1.0, 3.0, 5.0, 50.0, 0.0, 0.0),
        (8, 2, 7.0, 3.0, 2.0, 40.0, 0.0, -0.04),
        (8, 2, 6.0, 4.0, 7.0, 40.0, 0.04, -1.86),
    )
}


_TABLES = {"Office-Caltech-10": _OFFICE_CALTECH, "CIFAR-10": _CIFAR10}


def tuned_on(algorithm: str, dataset: str, presence: str) -> str | None:
    """The data set on which the paper tuned options for an algorithm and a model of presence; None where it did not.

    Of other data sets than CIFAR-10 it is Office-Caltech-10.
    """
    own = "CIFAR-10" if dataset == "cifar10" and algorithm in _CIFAR10 else "Office-Caltech-10"
    return own if algorithm in _TABLES[own] and presence in LAWS else None


def tuned(algorithm: str, dataset: str, presence: str) -> dict[str, Any]:
    """Options by name, as tuned on `tuned_on`; where the paper tuned none, those that its program calls default.

    Options of the algorithm inside are not among them.
    """
    own = tuned_on(algorithm, dataset, presence)
    values = _DEFAULT if own is None else _TABLES[own][algorithm][list(LAWS).index(presence)]
    return dict(zip(_NAMES, values, strict=True))


def published(algorithm: str, dataset: str, presence: str) -> dict[str, Any]:
    """Options by name, as tuned on `tuned_on`; empty where the paper tuned none."""
    return tuned(algorithm, dataset, presence) if tuned_on(algorithm, dataset, presence) else {}


def options_of(given: Mapping[str, Any]) -> KpflOptions:
    """The checked options of ``[algorithm.kpfl]``; raises `EdgesimError`."""
    return validate(KpflOptions, given, "KPFL", "algorithm.kpfl")
