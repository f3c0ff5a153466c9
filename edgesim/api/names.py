"""Lists of what configs can name, those of installed packages and of the user's own folders among them."""

from edgesim.base import content
from edgesim.learning.datasets import DATASETS
from edgesim.learning.payload import PARAMETER_COUNTS, TORCHVISION_COUNTS
from edgesim.simulation.kinds import KINDS


def policies() -> list[str]:
    """Names for ``selection.policy``."""
    return KINDS["policies"].names


def algorithms() -> list[str]:
    """Names for ``algorithm.name``."""
    return KINDS["algorithms"].names


def allocators() -> list[str]:
    """Names for ``round.allocator``."""
    return KINDS["allocators"].names


def partitions() -> list[str]:
    """Names for ``data.partition``."""
    return KINDS["partitions"].names


def drift_laws() -> list[str]:
    """Names for ``drift.law``."""
    return KINDS["drift_laws"].names


def joining_laws() -> list[str]:
    """Names for ``joining.law``."""
    return KINDS["joining_laws"].names


def presence_models() -> list[str]:
    """Names for ``availability.model``."""
    return KINDS["presence_models"].names


def motion_models() -> list[str]:
    """Names for ``mobility.model``."""
    return KINDS["motion_models"].names


def path_loss_laws() -> list[str]:
    """Names for ``law`` of a channel's ``[path_loss]``."""
    return KINDS["path_loss_laws"].names


def predictors() -> list[str]:
    """Names of forecasts of availability, for ``selection.predictor`` of FedDance and REFL."""
    return KINDS["predictors"].names


def metrics() -> list[str]:
    """Names of further measures of a model at its tests, for ``evaluation.metrics``."""
    return KINDS["metrics"].names


def codecs() -> list[str]:
    """Names for ``upload.codec``, and for ``download.codec`` those whose error is shorter than what they code."""
    return KINDS["codecs"].names


def protocols() -> list[str]:
    """Names for ``round.protocol``."""
    return KINDS["protocols"].names


def channels() -> list[str]:
    """Names for ``radio.channel``: those of ``./channels`` and edgesim's own."""
    return content.names("channels", ".toml")


def topologies() -> list[str]:
    """Names for ``topology.file``: those of ``./topologies`` and edgesim's own."""
    return content.names("topologies", ".toml")


def recordings() -> list[str]:
    """Names of recordings: ``availability.file``, ``devices.profile``, ``devices.links.file``, ``mobility.file``."""
    return content.names("traces", ".parquet")


def models() -> list[str]:
    """Names for ``learning.model``; beside these it takes ``torchvision:NAME`` and the dotted path of a callable."""
    return sorted(PARAMETER_COUNTS | TORCHVISION_COUNTS)


def datasets() -> list[str]:
    """Names for ``data.dataset``; beside these it takes an ``.npz`` file, a folder of images, or ``none``."""
    return sorted(DATASETS)


def scenarios() -> list[str]:
    """Names for ``edgesim scenario``: those of ``./scenarios`` and edgesim's own."""
    return content.names("scenarios", ".py")


LISTS = (
    policies, algorithms, allocators, partitions, drift_laws, joining_laws, presence_models, motion_models,
    path_loss_laws, predictors, metrics, codecs, protocols, channels,
    topologies, recordings, models, datasets, scenarios,
)  # fmt: skip
"""All of these functions; `edgesim list` prints their names."""
