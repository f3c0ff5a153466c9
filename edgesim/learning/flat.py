"""A module whose weights are one flat vector, so that loading, stepping and merging are single operations."""

import torch
from torch import Tensor, nn


class FlatModel:
    """A module on a device whose parameters and float buffers are views of one vector `weights`, [P].

    Trainable parameters come first, then float buffers; gradients accumulate in `gradient`, [trainable].
    Weights of convolutions lie channels-last, which is faster on CPU and GPU; the vector's order follows.
    """

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self.module = module.to(device)
        self.channels_last = any(isinstance(part, nn.Conv2d) for part in module.modules())
        self._parameters = [p for p in module.parameters() if p.requires_grad]
        buffers = [b for b in module.buffers() if b.is_floating_point()]
        self._counters = [(b, b.clone()) for b in module.buffers() if not b.is_floating_point()]
        self.trainable = sum(p.numel() for p in self._parameters)
        size = self.trainable + sum(b.numel() for b in buffers)
        self.weights = torch.empty(size, device=device)
        self.gradient = torch.zeros(self.trainable, device=device)
        position = 0
        for tensor in (*self._parameters, *buffers):
            view = self._view(self.weights, position, tensor)
            view.copy_(tensor.detach())
            if isinstance(tensor, nn.Parameter):
                tensor.grad = self._view(self.gradient, position, tensor)
            tensor.data = view
            position += tensor.numel()

    def _view(self, flat: Tensor, position: int, like: Tensor) -> Tensor:
        part = flat[position : position + like.numel()]
        if self.channels_last and like.dim() == 4:
            outputs, inputs, height, width = like.shape
            return part.view(outputs, height, width, inputs).permute(0, 3, 1, 2)
        return part.view(like.shape)

    def load(self, weights: Tensor) -> None:
        """Take over a vector of weights, [P]; buffers that count start again."""
        self.weights.copy_(weights)
        for counter, initial in self._counters:
            counter.copy_(initial)

    def snapshot(self) -> Tensor:
        """A copy of the weights, [P]."""
        return self.weights.clone()

    def parameters(self) -> list[nn.Parameter]:
        """Trainable parameters, in the order of the vector."""
        return self._parameters

    def inputs(self, images: Tensor) -> Tensor:
        """Images in the memory layout of the model."""
        return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images

    def state(self) -> dict[str, Tensor]:
        """All named tensors, contiguous copies on the CPU."""
        return {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in self.module.state_dict().items()
        }
