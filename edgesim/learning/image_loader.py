"""Loading of training images into the model; no other module gathers images for training."""

import itertools
import math
from collections.abc import Sequence

from torch import Tensor

from edgesim.base.arrays import Integers, Numbers
from edgesim.learning.flat import FlatModel
from edgesim.learning.tensors import DeviceData

_BYTES_AT_ONCE = 64 << 20


class ImageLoader:
    """Training samples in order of use, [n], of one job or of several behind one another."""

    def __init__(self, model: FlatModel, data: DeviceData, samples: Integers, changes: Numbers | None = None) -> None:
        """Images are augmented by ``changes``, [n, k], where there are any."""
        self._model = model
        self._data = data
        self._samples = data.index(samples)
        self._changes = None if changes is None else data.index(changes)

    def take(self, places: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Images in the layout of the model, and labels, of samples by their places."""
        changes = None if self._changes is None else self._changes[places]
        images, labels = self._data.train(self._samples[places], changes)
        return self._model.inputs(images), labels

    def chunks(self, edges: Sequence[int]) -> list[range]:
        """Steps between successive edges, [steps + 1], in chunks whose images fit in memory together."""
        image_bytes = math.prod(self._data.image_shape) * self._model.weights.element_size()
        at_once = _BYTES_AT_ONCE // image_bytes
        chunks: list[range] = []
        for step, (_, stop) in enumerate(itertools.pairwise(edges)):
            if not chunks or stop - edges[chunks[-1].start] > at_once:
                chunks.append(range(step, step + 1))
            else:
                chunks[-1] = range(chunks[-1].start, step + 1)
        return chunks
