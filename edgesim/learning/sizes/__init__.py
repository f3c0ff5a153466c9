"""Rules for the sizes of coded updates, one per file, by ``upload.size``."""

from edgesim.config import UploadConfig
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.sizes.adaquant import AdaQuant
from edgesim.learning.sizes.by_values import ByValues, Most
from edgesim.learning.sizes.dadaquant import DAdaQuant, Share
from edgesim.learning.sizes.fit import FitAtPlan, FitAtStart
from edgesim.learning.sizes.fixed import Fixed
from edgesim.learning.sizes.size_rule import SizeRule
from edgesim.learning.sizes.stream import Stream

_BY_OPTIONS: dict[str, type[SizeRule]] = {
    "fixed": Fixed,
    "dadaquant": DAdaQuant,
    "share": Share,
    "adaquant": AdaQuant,
}


def make_size_rule(upload: UploadConfig, codec: Codec, d: int, trains: bool) -> SizeRule:
    """The rule of a complete section ``[upload]`` for updates of ``d`` numbers; raises `EdgesimError`.

    ``trains`` is whether devices train, so that there are values.
    """
    if codec.by_values:
        return (ByValues if trains else Most)(codec, d)
    if upload.size in _BY_OPTIONS:
        return _BY_OPTIONS[upload.size](codec, d)
    if upload.size == "stream":
        return Stream(codec, d, None if upload.least is None else codec.floor(d, upload.least))
    kind = FitAtPlan if upload.fit_at == "plan" else FitAtStart
    assert upload.least is not None
    return kind(codec, d, codec.floor(d, upload.least))
