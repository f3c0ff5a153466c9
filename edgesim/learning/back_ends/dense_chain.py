"""Gradients of a stack of nets of linear layers and ReLUs in closed form, without a graph of the forward pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgesim.learning.back_ends.layers import Tensors, linear
from edgesim.learning.dense import before_relu, cross_entropy_gradients, dense_layers
from edgesim.learning.flat import FlatModel


@dataclass(frozen=True)
class DenseChain:
    """Linear layers with a ReLU between successive ones, from all values of an image to logits.

    Kernels and the layout of their arguments are those that torch's autograd uses, and so are the bits.
    """

    layers: Sequence[dict[str, str]]
    """Names in the model of the tensors of each linear layer, by their names in it: ``weight`` and perhaps ``bias``."""

    @classmethod
    def of(cls, model: FlatModel) -> "DenseChain | None":
        """The chain that a model is, or None if it is of another kind."""
        chain = dense_layers(model.module)
        if chain is None:
            return None
        layers = [{own: f"{place}.{own}" for own, _ in layer.named_parameters()} for place, layer in chain]
        # A parameter that does not train, or that two layers share, is not under this name in the vector.
        if model.names != [name for layer in layers for name in layer.values()]:
            return None
        return cls(layers)

    @torch.no_grad()
    def gradients(
        self, tensors: Tensors, images: Tensor, labels: Tensor, shares: Tensor
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Cross-entropy [n S], logits [n S, classes], and the gradients of the clients' tensors in the model's order.

        The gradients are those of the sum of losses, each times its share [n S], on images [n, S, C, H, W].
        """
        x, inputs = images.flatten(2), list[Tensor]()
        for layer in self.layers:
            x = torch.relu(x) if inputs else x
            inputs.append(x)
            x = linear({own: tensors[name] for own, name in layer.items()}, x)
        logits = x.flatten(0, 1)
        losses, of_logits = cross_entropy_gradients(logits, labels, shares)
        out = of_logits.view(len(images), -1, of_logits.shape[1]).transpose(0, 1)
        gradients: list[Tensor] = []
        for layer, rows in zip(reversed(self.layers), reversed(inputs), strict=True):
            if "bias" in layer:
                gradients.append(out.sum(1))
            gradients.append(torch.bmm(rows.transpose(0, 1).transpose(1, 2), out).transpose(1, 2))
            if rows is not inputs[0]:
                of_rows = torch.bmm(out, tensors[layer["weight"]]).transpose(0, 1)
                out = before_relu(of_rows, rows).transpose(0, 1)
        return losses, logits, gradients[::-1]
