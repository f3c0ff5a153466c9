"""QSGD: whole levels from -s to s of a scale, which is a vector's largest |number| or its length.

With stochastic rounding levels are right in the mean. Alistarh et al., "QSGD: communication-efficient SGD via gradient
quantization and encoding", NIPS 2017; with one level and the largest number it is TernGrad (Wen et al., NIPS 2017).
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Integers, Singles
from edgesim.base.needs import Rule
from edgesim.base.quantities import Count
from edgesim.learning.codecs.codec import Codec, Distortion, whole_least
from edgesim.learning.codecs.levels import elias, fixed
from edgesim.learning.codecs.message import Message, Reader
from edgesim.learning.codecs.scale import as_sent
from edgesim.learning.torch_types import Tensor


class Qsgd(Codec):
    """Quantisation in buckets, each with a scale of its own."""

    goes_with: ClassVar[tuple[Rule, ...]] = (
        Rule({"rounding": "nearest"}, {"norm": "max"}, "of a length all levels may round to 0 for ever"),
    )

    passes: ClassVar[float] = 10.0
    least: ClassVar[float] = 2.0
    sized_by: ClassVar[str] = "levels"
    levels: int = Field(7, ge=1, le=32_767)
    """s: levels on each side of 0; a level takes ceil(log2(2 s + 1)) bits."""
    norm: Literal["max", "l2"] = "max"
    """Scale of a bucket: its largest |number| or its length."""
    bucket: Count = Field(512, ge=2)
    """Numbers with a scale of their own, cut from the flat vector; from its size on there is one scale."""
    coding: Literal["fixed", "elias"] = "fixed"
    """How levels are written: each with the same bits, or by Elias' gamma code where that is shorter, whose size
    depends on the values."""
    rounding: Literal["stochastic", "nearest"] = "stochastic"
    """``stochastic``: right in the mean; ``nearest``: least error, of equally near levels the even one."""

    @property
    @override
    def distortion(self) -> Distortion:
        return "unbiased" if self.rounding == "stochastic" else "contraction"

    @override
    def setting(self, d: int) -> int:
        return self.levels

    @override
    def bits(self, d: int, setting: int) -> int:
        flags = -(-d // self.bucket) if self.coding == "elias" else 0
        return fixed.size_bits(d, self.bucket, setting) + flags

    @property
    @override
    def by_values(self) -> bool:
        return self.coding == "elias"

    @override
    def written_bits(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> int:
        if self.coding == "fixed":
            return self.bits(len(vector), setting)
        levels, _ = self.quantised(vector, uniforms, setting)
        return elias.size_bits(levels, self.bucket, setting)

    @override
    def largest(self, d: int, bits: int) -> int:
        """The most levels of the widest numbers that fit, 2^(w - 1) - 1 with w bits each."""
        width = (bits - fixed.size_bits(d, self.bucket, 0)) // d
        return fixed.most_levels(min(width, fixed.WIDEST)) if width >= fixed.NARROWEST else 0

    @override
    def floor(self, d: int, least: float) -> int:
        """The most levels of numbers of ``least`` bits."""
        return fixed.most_levels(whole_least(least, fixed.NARROWEST, fixed.WIDEST, "the bits of a level"))

    @override
    def coded(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Tensor:
        levels, scales = self._in_buckets(vector, uniforms, setting)
        levels.div_(setting).mul_(scales)
        return levels.view(-1)[: len(vector)]

    def _in_buckets(self, vector: Tensor, uniforms: Tensor | None, s: int) -> tuple[Tensor, Tensor]:
        """Levels of the buckets, [n, bucket], the last one filled up with zeros, and their scales, [n, 1]."""
        buckets = self._cut(vector)
        scales = self._scales(buckets)
        buckets.div_(scales.where(scales > 0, 1.0)).mul_(s)
        if uniforms is None:
            buckets.round_()
        else:
            buckets.view(-1)[: len(vector)] += uniforms
            buckets.floor_()
        # In float32 s plus a uniform may round to s + 1, and a rounded length may be below the largest number.
        return buckets.clamp_(-s, s), scales

    def _cut(self, vector: Tensor) -> Tensor:
        """A copy in buckets, [n, bucket], the last one filled up with zeros."""
        d = len(vector)
        size = min(self.bucket, d)
        flat = vector.new_empty(-(-d // size) * size)
        flat[:d] = vector
        flat[d:] = 0
        return flat.view(-1, size)

    def _scales(self, buckets: Tensor) -> Tensor:
        """The scale of each bucket, [n, 1]."""
        import torch

        if self.norm == "l2":
            return as_sent(buckets.double().square().sum(1).sqrt())[:, None]
        # Words without their sign are in the order of |numbers|, and the largest integer of a row is found in a third
        # of the time of the largest float.
        words: Tensor = buckets.view(torch.int32).bitwise_and(2**31 - 1).amax(1, keepdim=True)
        return words.view(torch.float32)

    @override
    def counts(self, encoded: Tensor, decoded: Tensor, setting: int) -> Tensor:
        """Counts of the levels."""
        scales = self._scales(self._cut(encoded))
        levels = self._cut(decoded).div_(scales.where(scales > 0, 1.0)).mul_(setting).round_()
        return levels.view(-1)[: len(decoded)].int().add_(setting).bincount()

    def write(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> Message:
        """The message of a vector, [d]."""
        levels, scales = self.quantised(vector, uniforms, setting)
        if self.coding == "elias":
            return elias.write(levels, scales, self.bucket, setting)
        return fixed.write(levels, scales, setting)

    def quantised(self, vector: Tensor, uniforms: Tensor | None, setting: int) -> tuple[Integers, Singles]:
        """Levels of a vector, [d], and the scale of each bucket, [ceil(d / bucket)]."""
        levels, scales = self._in_buckets(vector, uniforms, setting)
        return levels.view(-1)[: len(vector)].numpy().astype(np.int64), scales[:, 0].numpy()

    def read(self, reader: Reader, d: int, uniforms: Tensor | None, setting: int) -> Singles:
        """The values that a message holds, [d]."""
        read = elias.read if self.coding == "elias" else fixed.read
        levels, scales = read(reader, d, self.bucket, setting)
        return levels.astype(np.float32) / np.float32(setting) * np.repeat(scales, self.bucket)[:d]
