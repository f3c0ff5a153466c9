"""The forward pass of a stack for any module: `torch.func.vmap` over the clients' weights."""

import warnings

from torch import Tensor
from torch.func import vmap

from edgesim.learning.back_ends.layers import Forward, Tensors
from edgesim.learning.flat import FlatModel


def mapped(model: FlatModel) -> Forward:
    """The forward pass of a stack; it raises RuntimeError where the module draws from torch's generator."""

    def one(tensors: Tensors, keys: Tensor, images: Tensor) -> Tensor:
        model.masks.begin(lambda call: (keys[call, 0], keys[call, 1]))
        return model.call(tensors, images)

    over_clients = vmap(one, in_dims=(0, 0, 1), out_dims=1, randomness="error")

    def forward(tensors: Tensors, keys: Tensor, images: Tensor) -> Tensor:
        model.module.train()
        with warnings.catch_warnings():
            # Of operations that vmap can only run one client after another.
            warnings.filterwarnings("ignore", message="There is a performance drop")
            logits: Tensor = over_clients(tensors, keys, images)
        return logits

    return forward
