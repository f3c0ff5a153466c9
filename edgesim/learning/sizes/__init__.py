"""Rules for the sizes of coded updates, one per file, by ``upload.size``."""

from edgesim.config import UploadConfig
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.sizes.fit import FitAtPlan, FitAtStart
from edgesim.learning.sizes.fixed import Fixed
from edgesim.learning.sizes.size_rule import SizeRule


def make_size_rule(upload: UploadConfig, codec: Codec, d: int) -> SizeRule:
    """The rule of a complete section ``[upload]`` for updates of ``d`` numbers; raises `EdgesimError`."""
    if upload.size == "fixed":
        return Fixed(codec, d)
    kind = FitAtPlan if upload.fit_at == "plan" else FitAtStart
    assert upload.least is not None
    return kind(codec, d, codec.floor(d, upload.least))
