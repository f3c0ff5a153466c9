"""The model that all devices know where changes of models are coded on their way down."""

from typing import ClassVar

from edgesim.config import DownloadConfig
from edgesim.learning.codecs import DOWNWARD, make_codec
from edgesim.learning.codecs.transmission import receive
from edgesim.learning.torch_types import Tensor
from edgesim.streams import Streams


class PublicCopy:
    """A copy of the server's model, to which the server adds the coded difference between both after each merge.

    What coding loses is still missing in the copy, and so in the next difference. Buffers are those of the model.
    """

    SAVED: ClassVar = ("weights",)

    def __init__(self, config: DownloadConfig, streams: Streams, model: Tensor, parameters: int) -> None:
        """Begin with a model, [P], whose trainable part are so many ``parameters``."""
        self._codec = make_codec(config.codec, config.options, DOWNWARD)
        self._streams, self._size = streams, parameters
        self.weights = model
        """The copy, [P]."""

    def follow(self, model: Tensor, version: int) -> None:
        """Bring the copy nearer to a ``version`` of the model, [P]; raises as `receive`."""
        before, size = self.weights[: self._size], self._size
        setting, uniforms = self._codec.setting(size), self._uniforms(model, version)
        decoded = receive(self._codec, model[:size] - before, uniforms, setting, "download.codec")
        self.weights = model.clone()
        self.weights[:size] = before + decoded

    def _uniforms(self, model: Tensor, version: int) -> Tensor | None:
        from edgesim.learning import draws

        if not self._codec.draws:
            return None
        key = draws.key(int(self._streams.seeds("codec/down", 0, version)), 0)
        return draws.uniform(key, 0, (self._size,), model.new_empty(0).float())
