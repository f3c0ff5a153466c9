"""Updates on their way to the server: encoded one by one, in order of arrival, with the memories of their devices."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat

import numpy as np

from edgesim.base.errors import Diverged, EdgesimError
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.codecs.feedback import SENDERS, Feedback, Sent
from edgesim.learning.torch_types import Tensor


def charged_bits(codec: Codec, d: int, setting: int | None = None, field: str = "upload.codec") -> int:
    """Bits of an update of ``d`` numbers with a setting, that of the options when absent; ``field`` names the codec.

    Raises `EdgesimError` for a codec whose setting or bits are no whole number from 0 on.
    """
    setting = codec.setting(d) if setting is None else setting
    bits = codec.bits(d, setting) if _is_whole(setting) else 0
    if not _is_whole(bits) or not _is_whole(setting):
        method, answer = ("bits", bits) if _is_whole(setting) else ("setting", setting)
        raise answered(field, codec, method, repr(answer), "expected a whole number from 0 to 2^53")
    return int(bits)


def largest_setting(codec: Codec, d: int, bits: int) -> tuple[int, int]:
    """Greatest setting with which ``d`` numbers take at most so many bits, and its bits; 0 and 0 where none does.

    Raises `EdgesimError` for a codec that answers no whole number, or a setting that takes more.
    """
    setting = codec.largest(d, bits)
    taken = charged_bits(codec, d, setting) if _is_whole(setting) and setting else 0
    if not _is_whole(setting) or (setting and taken > bits):
        answer, expected = (
            f"{setting!r} for {bits} bits of {d} numbers",
            "expected the greatest setting that fits, or 0",
        )
        raise answered("upload.codec", codec, "largest", answer, expected)
    return int(setting), taken


def _is_whole(answer: object) -> bool:
    # Uploads by the thousand ask, nearly all of them about an int, of which no other class has to be looked at.
    return (type(answer) is int or isinstance(answer, np.integer)) and 0 <= int(answer) <= 2**53


def answered(field: str, codec: Codec, method: str, answer: str, expected: str) -> EdgesimError:
    """The error of a codec, named in ``field``, that answers what no codec may."""
    return EdgesimError(f"{field}: {type(codec).__name__}.{method} answered {answer[:100]}, {expected}", field)


def transmit(
    codec: Codec,
    feedback: Feedback,
    updates: Iterable[Tensor],
    devices: Iterable[int],
    memories: Mapping[int, Tensor],
    uniforms: Iterable[Tensor | None],
    settings: Iterable[int] | None = None,
) -> Iterator[Sent]:
    """Send updates, [d] each, in order of arrival, by devices with ``memories`` before the first of them.

    A later update of a device is sent with the memory that its earlier one leaves. ``uniforms`` are those of each
    update, [d], or None for a codec that does not draw; ``settings`` are the codec's for each, as its options say when
    absent. Raises as `receive` does.
    """
    left: dict[int, Tensor] = {}
    by_options = repeat(None) if settings is None else settings
    for update, device, drawn, setting in zip(updates, devices, uniforms, by_options, strict=False):
        coder = partial(
            receive, codec, uniforms=drawn, setting=codec.setting(len(update)) if setting is None else setting
        )
        try:
            sent = SENDERS[feedback](update, left.get(device, memories.get(device)), coder)
        except Diverged as error:
            raise Diverged(f"device {device}: {error}", *error.fields) from None
        if sent.memory is not None:
            left[device] = sent.memory
        yield sent


def receive(codec: Codec, vector: Tensor, uniforms: Tensor | None, setting: int, field: str = "upload.codec") -> Tensor:
    """A vector as it is decoded, [d], float32 whatever the precision of the vector; ``field`` names the codec.

    Raises `Diverged` for numbers, or scales of them, that are not finite in float32, and `EdgesimError` for a codec
    that answers anything but d finite numbers, or changes the vector.
    """
    single = vector.float()
    if not _is_finite(single):
        raise Diverged(
            f"{field}: an update has numbers that are not finite in float32, expected finite ones; lower learning.lr",
            field,
            "learning.lr",
        )
    changes = single._version
    try:
        coded = codec.coded(single, uniforms, setting)
    except Diverged as error:
        raise Diverged(f"{field}: {error}", field, *error.fields) from None
    if single._version != changes:
        raise answered(field, codec, "coded", "the vector that it was given, changed", "expected a tensor of its own")
    if not _is_tensor(coded):
        raise answered(
            field, codec, "coded", type(coded).__name__, f"expected {len(single)} finite numbers in a tensor"
        )
    kinds = [(of.dtype, of.shape, of.layout) for of in (coded, single)]
    if kinds[0] != kinds[1] or not _is_finite(coded):
        expected = f"expected {len(single)} finite numbers of {single.dtype}"
        raise answered(field, codec, "coded", f"{coded.dtype} {list(coded.shape)}", expected)
    return coded


def counted(codec: Codec, sent: Sent, setting: int) -> Tensor | None:
    """How often each symbol stands in a message that was sent, as `Codec.counts`.

    Raises `EdgesimError` for a codec that answers anything but whole numbers from 0 on.
    """
    counts = codec.counts(sent.encoded.float(), sent.decoded, setting)
    if counts is None:
        return None
    is_tensor = _is_tensor(counts)
    if not is_tensor or counts.is_floating_point() or counts.ndim != 1 or bool((counts < 0).any()):
        answer = f"{counts.dtype} {list(counts.shape)}" if is_tensor else type(counts).__name__
        raise answered("upload.codec", codec, "counts", answer, "expected whole numbers from 0 on in a tensor")
    return counts


def _is_tensor(answer: object) -> bool:
    import torch

    return isinstance(answer, torch.Tensor)


def _is_finite(vector: Tensor) -> bool:
    # Least and largest are found in a tenth of the time of `isfinite`; nan is both.
    least, most = vector.aminmax()
    return bool(least.isfinite()) and bool(most.isfinite())
