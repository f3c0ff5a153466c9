"""Codecs: what updates become on their way and how many bits they take, one per file, and their registry."""

from collections.abc import Mapping
from typing import Any

from edgesim.base.registry import Registry
from edgesim.base.validation import options_of
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.codecs.half import Half
from edgesim.learning.codecs.natural import Natural
from edgesim.learning.codecs.plain import Plain
from edgesim.learning.codecs.qsgd import Qsgd
from edgesim.learning.codecs.randk import RandK
from edgesim.learning.codecs.sign import Sign
from edgesim.learning.codecs.stc import Stc
from edgesim.learning.codecs.topk import TopK

_OWN: dict[str, type[Codec]] = {
    "none": Plain,
    "half": Half,
    "qsgd": Qsgd,
    "natural": Natural,
    "sign": Sign,
    "topk": TopK,
    "stc": Stc,
    "randk": RandK,
}
CODECS = Registry("upload.codec", "codecs", Codec, _OWN)


def make_codec(name: str, options: Mapping[str, Any]) -> Codec:
    """The codec of a name with its options; raises `EdgesimError` for an unknown name or option."""
    return options_of(CODECS.including(name), name, options, "upload.codec", "upload")
