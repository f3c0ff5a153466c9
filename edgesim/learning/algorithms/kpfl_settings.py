"""KPFL's options: its program's defaults, and those that its paper tuned for each algorithm and law of participation.

The latter (DPFL, ``hyper_config.json``) were tuned per cell, on the test accuracy of a ResNet-10 on Office-Caltech-10
or CIFAR-10.
"""

import csv
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
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


LAWS = {"always": "static", "bernoulli": "timed-random", "markov": "Markov"}
"""Models of presence and the paper's words for them; others have no settings of their own."""


@cache
def _tables() -> dict[tuple[str, ...], dict[str, Any]]:
    """Tuned options by data set, algorithm and model of presence, as ``kpfl_settings.csv`` lists them."""
    text = resources.files("edgesim.learning.algorithms").joinpath("kpfl_settings.csv").read_text()
    names, *rows = csv.reader(text.splitlines())
    return {tuple(row[:3]): dict(zip(names[3:], map(json.loads, row[3:]), strict=True)) for row in rows}


def tuned_on(algorithm: str, dataset: str, presence: str) -> str | None:
    """The data set on which the paper tuned options for an algorithm and a model of presence; None where it did not.

    Of other data sets than CIFAR-10 it is Office-Caltech-10.
    """
    names = [*["CIFAR-10"] * (dataset == "cifar10"), "Office-Caltech-10"]
    return next((name for name in names if (name, algorithm, presence) in _tables()), None)


def tuned(algorithm: str, dataset: str, presence: str) -> dict[str, Any]:
    """Options by name, as tuned on `tuned_on`; empty where the paper tuned none.

    Options of the algorithm inside are not among them.
    """
    return dict(_tables().get((tuned_on(algorithm, dataset, presence) or "", algorithm, presence), {}))


def options_of(given: Mapping[str, Any]) -> KpflOptions:
    """The checked options of ``[algorithm.kpfl]``; raises `EdgesimError`."""
    return validate(KpflOptions, given, "KPFL", "algorithm.kpfl")
