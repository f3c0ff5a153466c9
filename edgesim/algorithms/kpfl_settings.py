"""KPFL's options as its paper tuned them for each algorithm and law of participation (DPFL, ``hyper_config.json``).

They were tuned per cell, on the test accuracy of a ResNet-10 on Office-Caltech-10 or CIFAR-10.
"""

from typing import Any

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
"""By algorithm, for the three laws of `LAWS` in their order."""
_CIFAR10 = {
    "fedprox": (
        (9, 2, 1.0, 3.0, 5.0, 50.0, 0.0, 0.0),
        (8, 2, 7.0, 3.0, 2.0, 40.0, 0.0, -0.04),
        (8, 2, 6.0, 4.0, 7.0, 40.0, 0.04, -1.86),
    ),
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
