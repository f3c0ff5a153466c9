"""What happens to updates on their way to the server, one class per file, and the list of a run."""

from edgesim.config import RunConfig
from edgesim.learning.transforms.clip import Clip
from edgesim.learning.transforms.noise import Noise
from edgesim.learning.transforms.transform import Transform
from edgesim.streams import Streams


def make_transforms(config: RunConfig, streams: Streams, parameters: int) -> list[Transform]:
    """Transforms of a run's updates, in order, of models with so many trainable ``parameters``."""
    privacy = config.privacy
    if privacy.mechanism == "none":
        return []
    clip = Clip(privacy, parameters)
    return [clip, Noise(privacy, streams, parameters)] if privacy.mechanism == "local" else [clip]
