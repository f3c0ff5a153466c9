"""Data sets of the devices as rounds or seconds pass: the drift laws and their registry."""

from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of
from edgesim.config import DataConfig, DriftConfig, RunConfig
from edgesim.learning import partitions
from edgesim.learning.drift.arrival import SampleArrival
from edgesim.learning.drift.frames import Frames
from edgesim.learning.drift.gradual import Gradual
from edgesim.learning.drift.law import Law
from edgesim.learning.drift.recurring import Recurring
from edgesim.learning.drift.rotation import Rotation
from edgesim.learning.drift.swap import Swap

_OWN: dict[str, type[Law]] = {
    "frames": Frames,
    "rotation": Rotation,
    "swap": Swap,
    "gradual": Gradual,
    "recurring": Recurring,
    "arrival": SampleArrival,
}
LAWS = Registry("drift.law", "drift", Law, _OWN)


def make_law(drift: DriftConfig) -> Law:
    """The law that a config names, with its options; raises `EdgesimError` for an unknown name or option."""
    return entry_of(LAWS, drift.law, drift.options)


def resolve_data(config: RunConfig) -> DataConfig:
    """The section ``[data]`` with the defaults of partition or drift law written out; raises as `make_law` does."""
    law, data = make_law(config.drift), config.data
    if isinstance(law, Frames):
        return partitions.resolve(data)
    return data.model_copy(update={"samples_per_device": data.samples_per_device or law.default_samples})
