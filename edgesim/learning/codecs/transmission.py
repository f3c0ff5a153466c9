"""Updates on their way to the server: encoded one by one, in order of arrival, with the memories of their devices."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat
from numbers import Integral

from edgesim.base.errors import Diverged, EdgesimError
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.codecs.feedback import SENDERS, Feedback, Sent
from edgesim.learning.torch_types import Tensor


def charged_bits(codec: Codec, d: int, setting: int | None = None, field: str = "upload.codec") -> int:
    """Bits of an update of ``d`` numbers with a setting, that of the options when absent; ``field`` names the codec.

    Raises `EdgesimError` for a codec that answers no whole number from 0 on.
    """
    bits = codec.bits(d, codec.setting(d) if setting is None else setting)
    if not isinstance(bits, Integral) or bits < 0:
        raise EdgesimError(
            f"{field}: {type(codec).__name__}.bits answered {bits!r}, expected a whole number from 0 on",
            field,
        )
    return int(bits)


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
    that answers anything but d finite numbers.
    """
    single = vector.float()
    if not _is_finite(single):
        raise Diverged(
            f"{field}: an update has numbers that are not finite in float32, expected finite ones; lower learning.lr",
            field,
            "learning.lr",
        )
    try:
        coded = codec.coded(single, uniforms, setting)
    except Diverged as error:
        raise Diverged(f"{field}: {error}", field, *error.fields) from None
    if coded.shape != single.shape or coded.dtype != single.dtype or not _is_finite(coded):
        raise EdgesimError(
            f"{field}: {type(codec).__name__}.coded answered {coded.dtype} {list(coded.shape)}, expected "
            f"{len(single)} finite numbers of {single.dtype}",
            field,
        )
    return coded


def _is_finite(vector: Tensor) -> bool:
    # Least and largest are found in a tenth of the time of `isfinite`; nan is both.
    least, most = vector.aminmax()
    return bool(least.isfinite()) and bool(most.isfinite())
