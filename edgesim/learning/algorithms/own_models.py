"""Rules of algorithms whose devices may each train a model of their own, which never travels."""

from edgesim.base.needs import Rule
from edgesim.learning.algorithms.staleness import without_age

_NO_MODELS = "no models are averaged"

WITHOUT_MODELS = (
    Rule({"algorithm.average_weights": False}, {"algorithm.weights": "samples"}, _NO_MODELS),
    without_age({"algorithm.average_weights": False}, _NO_MODELS),
)
"""Refuse weights of updates, which have no effect where no models are averaged."""
