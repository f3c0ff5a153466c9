"""Coding of updates: what the server decodes of each, and the memory of its device against what that lost."""

from collections.abc import Iterator, Sequence

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.codecs.entropy import entropy_bits
from edgesim.learning.codecs.feedback import Feedback, Sent, with_lost
from edgesim.learning.codecs.transmission import transmit
from edgesim.learning.norms import norm
from edgesim.learning.torch_types import Tensor
from edgesim.learning.transforms.transform import Metrics, Passed, Transform
from edgesim.streams import Streams


class Encode(Transform):
    """Codes the trainable part of updates, ``parameters`` numbers, in order of arrival; buffers stay as they are.

    ``draws`` is the stream of its uniforms, one for each device, task and number.
    """

    def __init__(
        self, codec: Codec, feedback: Feedback, streams: Streams, parameters: int, draws: str = "codec/up"
    ) -> None:
        super().__init__()
        self._codec, self._feedback = codec, feedback
        self._streams, self._size, self._draws = streams, parameters, draws
        self.stored = int(feedback != "none")

    @override
    def apply(
        self, ids: Integers, tasks: Integers, updates: Sequence[Tensor], settings: Sequence[int] | None = None
    ) -> Passed:
        """Decoded updates with the memories that they leave, and what coding lost; raises as `transmit` does."""
        received, memories, measured = [], dict[int, Tensor](), list[dict[str, float]]()
        own, devices = [update[: self._size] for update in updates], ids.tolist()
        uniforms = self._uniforms(ids, tasks, updates)
        settings = settings or [self._codec.setting(self._size)] * len(updates)
        sending = transmit(self._codec, self._feedback, own, devices, self.state, uniforms, settings)
        for update, device, setting, sent in zip(updates, devices, settings, sending, strict=True):
            whole = update.clone()
            whole[: self._size] = sent.update
            received.append(whole)
            measured.append(self._measured(update[: self._size], sent, setting))
            if sent.memory is not None:
                memories[device] = sent.memory
        return Passed(received, lambda alpha: _means(measured), memories)

    @override
    def written_bits(self, ids: Integers, tasks: Integers, updates: Sequence[Tensor]) -> list[int]:
        own, uniforms = [update[: self._size] for update in updates], list(self._uniforms(ids, tasks, updates))
        sending = transmit(self._codec, self._feedback, own, ids.tolist(), self.state, uniforms)
        setting = self._codec.setting(self._size)
        pairs = zip(sending, uniforms, strict=True)
        return [self._codec.written_bits(sent.encoded.float(), drawn, setting) for sent, drawn in pairs]

    @override
    def of_lost(self, ids: Integers, updates: Sequence[Tensor]) -> dict[int, Tensor]:
        """Residuals with the updates."""
        pairs = zip(ids.tolist(), updates, strict=True)
        return {device: with_lost(self.state.get(device), update[: self._size]) for device, update in pairs}

    def _uniforms(self, ids: Integers, tasks: Integers, updates: Sequence[Tensor]) -> Iterator[Tensor | None]:
        """Uniforms of each update, [trainable]; None for a codec that does not draw."""
        from edgesim.learning import draws

        for seed, update in zip(self._streams.seeds(self._draws, ids, tasks).tolist(), updates, strict=True):
            like = update.new_empty(0).float()
            yield draws.uniform(draws.key(seed, 0), 0, (self._size,), like) if self._codec.draws else None

    def _measured(self, update: Tensor, sent: Sent, setting: int) -> dict[str, float]:
        """Numbers about an update that was sent; those over a length of 0 are left out."""
        lost = norm(sent.encoded - sent.decoded)
        rows = {"setting": float(setting)} if setting else {}
        if length := norm(sent.encoded):
            rows["error"] = lost / length
        if self._feedback != "none" and (length := norm(update)):
            rows["missing"] = lost / length
        symbols = self._codec.symbols(sent.encoded.float(), sent.decoded, setting)
        return rows if symbols is None else rows | {"entropy_bits": entropy_bits(symbols)}


def _means(measured: Sequence[dict[str, float]]) -> Metrics:
    """The mean of each number over the updates that have it, as rows of ``metrics``."""
    names = dict.fromkeys(name for rows in measured for name in rows)
    return {("codec", name): float(np.mean([rows[name] for rows in measured if name in rows])) for name in names}
