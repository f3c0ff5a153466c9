"""What happens to updates on their way to the server, one class per file, and the list of a run."""

from collections.abc import Iterable

from edgesim.config import RunConfig
from edgesim.learning.codecs import make_codec, make_upload_codec
from edgesim.learning.transforms.clip import Clip
from edgesim.learning.transforms.encode import Encode
from edgesim.learning.transforms.noise import Noise
from edgesim.learning.transforms.transform import Transform
from edgesim.streams import Streams


def make_transforms(config: RunConfig, streams: Streams, parameters: int) -> list[Transform]:
    """Transforms of a run's updates, in order, of models with so many trainable ``parameters``."""
    privacy, upload = config.privacy, config.upload
    transforms: list[Transform] = [] if privacy.mechanism == "none" else [Clip(privacy, parameters)]
    if privacy.mechanism == "local":
        transforms.append(Noise(privacy, streams, parameters))
    if upload is not None:
        transforms.append(Encode(make_upload_codec(upload), upload.feedback or "none", streams, parameters))
    if privacy.mechanism == "central" and upload is not None:
        # Coding may lengthen an update, and the noise on the mean is measured by the longest.
        transforms.append(Clip(privacy, parameters, "clipped_again"))
    return transforms


def make_beside(config: RunConfig, streams: Streams, parameters: int, names: Iterable[str]) -> dict[str, Encode]:
    """Codings of the tensors ``names`` that travel beside an update; empty where they travel as they are.

    What is coded is their change from what the device was given, to which the server adds it: EF21, whose memory is the
    tensor that both sides know. A residual would count twice what is missing.
    """
    upload = config.upload
    if upload is None or upload.beside == "plain":
        return {}
    codec = make_codec(upload.codec, upload.options).unscaled()
    return {name: Encode(codec, "none", streams, parameters, f"codec/up/{name}") for name in names}
