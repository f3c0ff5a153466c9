"""A module whose weights are one flat vector, so that loading, stepping and merging are single operations."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call

from edgesim.learning import dropout
from edgesim.learning.algorithms.records import Outputs
from edgesim.learning.payload import Network


class FlatModel:
    """A module on a device whose parameters and float buffers are views of one vector `weights`, [P].

    Trainable parameters come first, then float buffers; gradients accumulate in `gradient`, [trainable].
    Weights of convolutions lie channels-last, which is faster on a CPU; the vector's order follows.
    Dropout layers are replaced by layers whose masks `masks` decides. With ``mixed`` precision, forward passes
    of training run in bfloat16 where torch's autocast holds that safe.
    """

    def __init__(self, module: nn.Module, device: torch.device, mixed: bool = False) -> None:
        self.module = module.to(device)
        self.device = device
        self.mixed = mixed
        self.masks = dropout.install(module)
        self.channels_last = any(isinstance(part, nn.Conv2d) for part in module.modules())
        heads = [layer for layer in module.modules() if isinstance(layer, nn.Linear) and _trains(layer)]
        self.head = heads[-1] if heads else None
        """The last `nn.Linear` that trains, if there is any."""
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        self._parameters = [parameter for _, parameter in named]
        buffers = [(name, b) for name, b in module.named_buffers() if b.is_floating_point()]
        self._counters = [(b, b.clone()) for b in module.buffers() if not b.is_floating_point()]
        self.names = [name for name, _ in (*named, *buffers)]
        """Names of the tensors in the vector, in its order."""
        self._shapes = [tensor.shape for _, tensor in (*named, *buffers)]
        first = {id(tensor): name for name, tensor in (*named, *buffers)}
        self._places = {place: first[id(tensor)] for place, tensor in _tensors_of(module) if id(tensor) in first}
        of_head = _tensors_of(self.head) if self.head else ()
        self._of_head = {own: first[id(tensor)] for own, tensor in of_head if id(tensor) in first}
        self.trainable = sum(parameter.numel() for parameter in self._parameters)
        self.dtype = self._parameters[0].dtype
        self.weights = torch.empty(sum(map(torch.Size.numel, self._shapes)), device=device, dtype=self.dtype)
        self.gradient = torch.zeros(self.trainable, device=device, dtype=self.dtype)
        gradients = self.split(self.gradient)
        for place, ((_, tensor), view) in enumerate(zip((*named, *buffers), self.split(self.weights), strict=True)):
            view.copy_(tensor.detach())
            if place < len(named):
                tensor.grad = gradients[place]
            tensor.data = view

    @property
    def network(self) -> Network:
        """Numbers of parameters, features and tensors, for `edgesim.learning.accounts`."""
        sizes = tuple(parameter.numel() for parameter in self._parameters)
        return Network(self.trainable, self.head.in_features if self.head else 0, len(sizes), sizes)

    def split(self, vectors: Tensor) -> list[Tensor]:
        """Views of weights [..., P] as the tensors they are made of, each [..., *shape]; of gradients, likewise."""
        views: list[Tensor] = []
        lead = vectors.shape[:-1]
        position = 0
        for shape in self._shapes:
            if position == vectors.shape[-1]:
                break
            part = vectors[..., position : position + shape.numel()]
            position += shape.numel()
            if self.channels_last and len(shape) == 4:
                outputs, inputs, height, width = shape
                views.append(part.view(*lead, outputs, height, width, inputs).movedim(-1, -3))
            else:
                views.append(part.view((*lead, *shape)))
        return views

    def load(self, weights: Tensor) -> None:
        """Take over a vector of weights, [P]; buffers that count start again."""
        self.weights.copy_(weights)
        self.reset_counters()

    def reset_counters(self) -> None:
        """Let buffers that count, such as the batches that a batch norm has seen, start again."""
        for counter, initial in self._counters:
            counter.copy_(initial)

    def snapshot(self) -> Tensor:
        """A copy of the weights, [P]."""
        return self.weights.clone()

    def parameters(self) -> list[nn.Parameter]:
        """Trainable parameters, in the order of the vector."""
        return self._parameters

    def call(self, tensors: Mapping[str, Tensor], images: Tensor) -> Tensor:
        """The module's output with ``tensors`` in the place of its own, by their names in the vector."""
        values = {place: tensors[name] for place, name in self._places.items() if name in tensors}
        # What torch calls tying swaps the tensors of a layer in two places twice, and leaves others behind.
        logits: Tensor = functional_call(self.module, values, (images,), tie_weights=False)
        return logits

    def outputs(self, images: Tensor, tensors: Mapping[str, Tensor] | None = None) -> Outputs:
        """Logits and, where the model has a `head`, the features that went into it; ``tensors`` as in `call`."""
        seen: list[Tensor] = []
        heads = [] if self.head is None else [self.head]
        hooks = [head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0])) for head in heads]
        try:
            logits = self.module(images) if tensors is None else self.call(tensors, images)
        finally:
            for hook in hooks:
                hook.remove()
        return Outputs(logits, seen[-1].flatten(1) if seen else None)

    def of_head(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The `head`'s tensors, by their names in it, among ``tensors`` by their names in the vector."""
        return {own: tensors[name] for own, name in self._of_head.items()}

    def head_logits(self, of_head: Mapping[str, Tensor], latents: Tensor) -> Tensor:
        """Logits [n, classes] that the `head` makes of latents [n, F], with the tensors of `of_head` as its own."""
        assert self.head is not None
        logits: Tensor = functional_call(self.head, dict(of_head), (latents,))
        return logits

    def inputs(self, images: Tensor) -> Tensor:
        """Images in the memory layout and type of the model."""
        images = images.to(self.dtype)
        return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images

    def autocast(self) -> AbstractContextManager[None]:
        """Context in which forward passes have the precision of training."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.mixed else nullcontext()

    def state(self) -> dict[str, Tensor]:
        """All named tensors, contiguous copies on the CPU."""
        return {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in self.module.state_dict().items()
        }


def _trains(layer: nn.Module) -> bool:
    return any(own.requires_grad for own in layer.parameters())


def _tensors_of(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers, each in every layer that has it, by their places; a layer in two places counts once."""
    for prefix, layer in module.named_modules():
        for own in (layer.named_parameters, layer.named_buffers):
            yield from own(prefix, recurse=False, remove_duplicate=False)
