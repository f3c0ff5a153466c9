"""Codecs: what updates become on their way and how many bits they take, one per file, and their registry."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of, options_of
from edgesim.config import RunConfig, UploadConfig
from edgesim.learning.codecs.codec import Codec, Distortion
from edgesim.learning.codecs.half import Half
from edgesim.learning.codecs.natural import Natural
from edgesim.learning.codecs.plain import Plain
from edgesim.learning.codecs.qsgd import Qsgd
from edgesim.learning.codecs.randk import RandK
from edgesim.learning.codecs.sign import Sign
from edgesim.learning.codecs.stc import Stc
from edgesim.learning.codecs.topk import TopK
from edgesim.learning.codecs.transmission import answered

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
DOWNWARD = Registry("download.codec", "codecs", Codec, {name: _OWN[name] for name in ("qsgd", "sign", "topk", "stc")})
"""Those for changes of models on their way down, whose error can be shorter than what they code."""


_ANY = 2**20
"""Numbers of an update for checks of sizes before their number is known, for which any will do."""


def make_codec(
    name: str, options: Mapping[str, Any], registry: Registry[type[Codec]] = CODECS, beside: Iterable[str] = ()
) -> Codec:
    """The codec of a name with its options, which lie in a section with other keys ``beside`` them.

    Raises `EdgesimError` for an unknown name or option, and for a class whose error or passes are none there can be.
    """
    codec = entry_of(registry, name, options, beside=beside)
    kinds, passes = get_args(Distortion), codec.passes
    if codec.distortion not in kinds:
        expected = f"expected {', '.join(map(repr, kinds[:-1]))} or {kinds[-1]!r}"
        raise answered(registry.field, codec, "distortion", repr(codec.distortion), expected)
    if isinstance(passes, bool) or not isinstance(passes, int | float) or not 0 <= passes < math.inf:
        raise answered(registry.field, codec, "passes", repr(passes), "expected a finite number, 0 or more")
    return codec


def make_upload_codec(upload: UploadConfig) -> Codec:
    """The codec of a section ``[upload]`` whose feedback is known, as it goes with this; raises `EdgesimError`."""
    codec = make_codec(upload.codec, upload.options)
    return codec if upload.feedback == "none" else codec.for_feedback()


def resolve(config: RunConfig) -> dict[str, Any]:
    """The sections ``upload`` and ``download`` of a run with all defaults written out; raises `EdgesimError`."""
    upload, download = config.upload, config.download
    if upload is not None:
        codec = make_codec(upload.codec, upload.options, beside=UploadConfig.model_fields)
        if upload.beside == "coded" and codec.unscaled().distortion == "unbiased":
            raise EdgesimError(
                f"upload.beside: 'coded' does not go with upload.codec = {upload.codec!r}: coded changes need a codec "
                "whose error is shorter than they are, or what is missing would grow without end; use 'plain' or "
                "another codec",
                "upload.beside",
                "upload.codec",
            )
        feedback = upload.feedback or codec.default_feedback
        options = codec.model_dump()
        if upload.size == "fit":
            upload = _fitting(upload, codec)
            options.pop(codec.sized_by, None)
        upload = upload.with_options(options).model_copy(update={"feedback": feedback})
        samples = make_upload_codec(upload).samples(feedback) * (config.algorithm.compute_cost == "passes")
        upload = upload.model_copy(update={"encode": samples if upload.encode is None else upload.encode})
        if codec.by_values:
            upload = upload.model_copy(update={"plan": upload.plan or "bound"})
        if upload.size == "stream":
            _need_stream(upload, codec)
    if download is not None:
        if download.codec == "none":
            # Without options the section would not be there.
            options_of({"none": Plain}, "none", download.options, DOWNWARD.field, "download")
        codec = make_codec(download.codec, download.options, DOWNWARD, type(download).model_fields)
        if codec.distortion != "contraction":
            raise EdgesimError(
                f"download.codec: {download.codec!r} cannot code changes of models, whose error must be shorter than "
                "they are; use 'sign', 'topk', 'stc' or 'qsgd' with rounding = 'nearest'",
                "download.codec",
            )
        download = download.with_options(codec.model_dump())
    return {"upload": upload, "download": download}


def _fitting(upload: UploadConfig, codec: Codec) -> UploadConfig:
    """The section of uploads whose size follows the channel, with its defaults; raises `EdgesimError`."""
    if type(codec).largest is Codec.largest:
        raise EdgesimError(
            f"upload.size: 'fit' does not go with upload.codec = {upload.codec!r}, whose messages have one size; use "
            "'topk', 'stc', 'randk' or 'qsgd', or size = 'fixed'",
            "upload.size",
            "upload.codec",
        )
    if (sized_by := codec.sized_by) in upload.options:
        raise EdgesimError(
            f"upload.{sized_by}: expected none with upload.size = 'fit', where rate and time left decide "
            f"(got {upload.options[sized_by]}); upload.least is the smallest size",
            f"upload.{sized_by}",
            "upload.size",
        )
    least = codec.least if upload.least is None else upload.least
    if codec.floor(_ANY, least) > codec.largest(_ANY, 64 * _ANY):
        raise EdgesimError(
            f"upload.least: expected at most the largest size that {upload.codec!r} takes with upload.size = 'fit' "
            f"(got {least:g})",
            "upload.least",
        )
    return upload.model_copy(update={"fit_at": upload.fit_at or "start", "least": least})


def _need_stream(upload: UploadConfig, codec: Codec) -> None:
    """Refuse a codec whose messages cannot be cut, and a bad ``upload.least``; raises `EdgesimError`."""
    if not codec.streams:
        coding = upload.options.get("coding")
        written = f" with coding = {coding!r}" if coding else ""
        raise EdgesimError(
            f"upload.size: 'stream' does not go with upload.codec = {upload.codec!r}{written}, whose messages are read "
            "as a whole; use 'topk' with coding = 'index', or 'randk'",
            "upload.size",
            "upload.codec",
        )
    if upload.least is not None and codec.floor(_ANY, upload.least) > codec.setting(_ANY):
        whole = f"upload.{codec.sized_by} = {upload.options[codec.sized_by]:g}" if codec.sized_by else "its options"
        raise EdgesimError(
            f"upload.least: expected at most the size of a whole stream by {whole} (got {upload.least:g})",
            "upload.least",
            f"upload.{codec.sized_by or 'codec'}",
        )
