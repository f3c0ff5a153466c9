"""Coding of updates: what the server decodes of each, and the memory of its device against what that lost."""

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
from typing_extensions import override

from edgesim.learning.codecs.codec import Codec
from edgesim.learning.codecs.entropy import entropy_bits
from edgesim.learning.codecs.feedback import Feedback, Sent, with_lost
from edgesim.learning.codecs.transmission import counted, transmit
from edgesim.learning.norms import norm
from edgesim.learning.torch_types import Tensor
from edgesim.learning.transforms.transform import Metrics, Passed, Transform, Updates
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
    def apply(self, updates: Updates) -> Passed:
        """Decoded updates with the memories that they leave, and what coding lost; raises as `transmit` does."""
        received, memories, measured = [], dict[int, Tensor](), list[dict[str, float]]()
        settings = updates.settings or [self._codec.setting(self._size)] * len(updates.vectors)
        rows = zip(updates.vectors, updates.ids.tolist(), settings, self._sending(updates), strict=True)
        for update, device, setting, sent in rows:
            received.append(self._whole(update, sent))
            measured.append(self._measured(update[: self._size], sent, setting))
            if sent.memory is not None:
                memories[device] = sent.memory
        return Passed(received, lambda alpha: _means(measured), memories)

    @override
    def received(self, updates: Updates) -> list[Tensor]:
        """Decoded updates alone."""
        return [self._whole(*pair) for pair in zip(updates.vectors, self._sending(updates), strict=True)]

    @override
    def written_bits(self, updates: Updates, numbers: int) -> list[int]:
        """Bits of messages of the update's numbers, again and again where the charged model has more of them."""
        codec, setting = self._codec, self._codec.setting(numbers)
        pairs = zip(self._sending(updates), self._uniforms(updates, numbers), strict=False)
        times = -(-numbers // self._size)
        return [codec.written_bits(sent.encoded.float().repeat(times)[:numbers], u, setting) for sent, u in pairs]

    @override
    def of_lost(self, updates: Updates) -> dict[int, Tensor]:
        """Residuals with the updates."""
        pairs = zip(updates.ids.tolist(), updates.vectors, strict=True)
        return {device: with_lost(self.state.get(device), update[: self._size]) for device, update in pairs}

    def _sending(self, updates: Updates) -> Iterator[Sent]:
        """The trainable part of each update as it is sent."""
        own, ids = [update[: self._size] for update in updates.vectors], updates.ids.tolist()
        uniforms = self._uniforms(updates, self._size)
        return transmit(self._codec, self._feedback, own, ids, self.state, uniforms, updates.settings)

    def _uniforms(self, updates: Updates, numbers: int) -> Iterator[Tensor | None]:
        """Uniforms of each update, [numbers]; None, again and again, for a codec that does not draw."""
        from edgesim.learning import draws

        if not self._codec.draws:
            yield from repeat(None)
        seeds = self._streams.seeds(self._draws, updates.ids, updates.tasks).tolist()
        for seed, update in zip(seeds, updates.vectors, strict=True):
            yield draws.uniform(draws.key(seed, 0), 0, (numbers,), update.new_empty(0).float())

    def _whole(self, update: Tensor, sent: Sent) -> Tensor:
        """An update as the server has it, in a tensor of its own."""
        import torch

        return torch.cat([sent.update.to(update.dtype), update[self._size :]])

    def _measured(self, update: Tensor, sent: Sent, setting: int) -> dict[str, float]:
        """Numbers about an update that was sent; those over a length of 0 are left out."""
        left = sent.memory if self._feedback == "residual" else None
        lost = norm(sent.encoded - sent.decoded if left is None else left)
        rows = {"setting": float(setting)} if setting else {}
        if length := norm(sent.encoded):
            rows["error"] = lost / length
        if self._feedback != "none" and (length := norm(update)):
            rows["missing"] = lost / length
        counts = counted(self._codec, sent, setting)
        return rows if counts is None else rows | {"entropy_bits": entropy_bits(counts)}


def _means(measured: Sequence[dict[str, float]]) -> Metrics:
    """The mean of each number over the updates that have it, as rows of ``metrics``."""
    names = dict.fromkeys(name for rows in measured for name in rows)
    return {("codec", name): float(np.mean([rows[name] for rows in measured if name in rows])) for name in names}
