"""The few numbers of a vector that travel: how many, and which."""

import math
from typing import Annotated

from pydantic import Field

from edgesim.base.errors import EdgesimError
from edgesim.learning.torch_types import Tensor

Ratio = Annotated[float, Field(gt=0, le=1)]
LEAST = 0.001
"""``upload.least`` when absent: the least share of all numbers that a device sends."""
_STRIDE = 64


def count(ratio: float, d: int) -> int:
    """k = ceil(ratio d), at least 1."""
    # 0.07 x 100 is 7.000000000000001.
    return max(1, math.ceil(ratio * d - 1e-9))


def floor(least: float, d: int) -> int:
    """k by ``upload.least``, a ratio; raises `EdgesimError` for any other number."""
    if not 0 < least <= 1:
        raise EdgesimError(f"upload.least: expected a ratio above 0 and up to 1 (got {least:g})", "upload.least")
    return count(least, d)


def largest(scores: Tensor, k: int) -> Tensor:
    """Places of the k largest scores, [k], ascending; of equal scores the lower places come first."""
    # A sample nearly always tells a score that few more than k reach, which is much quicker than to look at all.
    sample, expected = scores[::_STRIDE], k / _STRIDE
    rank = math.ceil(expected + 4 * math.sqrt(expected) + 4)
    if rank < len(sample) // 2:
        near = (scores >= sample.topk(rank, sorted=False).values.min()).nonzero()[:, 0]
        if len(near) >= k:
            return near[_largest(scores[near], k)]
    return _largest(scores, k)


def _largest(scores: Tensor, k: int) -> Tensor:
    import torch

    top = scores.topk(k, sorted=False)
    least, places = top.values.min(), top.indices
    if int((scores >= least).sum()) > k:
        above = places[top.values > least]
        places = torch.cat([above, (scores == least).nonzero()[: k - len(above), 0]])
    return places.sort().values
