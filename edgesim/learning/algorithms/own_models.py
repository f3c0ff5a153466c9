"""What algorithms have in common whose devices may each train a model of their own, which never travels."""

from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.algorithms.algorithm import AveragingOptions
from edgesim.learning.algorithms.staleness import weighs_by_age_on_request


def refuse_weights(name: str, options: AveragingOptions, config: RunConfig) -> None:
    """Refuse weights of updates, which have no effect where no models are averaged; raises `EdgesimError`."""
    for field, given in (
        ("algorithm.weights", options.weights == "equal"),
        ("staleness.weight", weighs_by_age_on_request(config)),
        ("algorithm.kpfl", config.algorithm.kpfl is not None),
    ):
        if given:
            raise EdgesimError(
                f"{field}: algorithm {name!r} averages no models unless algorithm.average_weights = true, so that it "
                "has no effect; remove it",
                field,
            )
