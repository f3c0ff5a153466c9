"""Torch for modules that timing-only runs import: its types, and itself from its first use on."""

from typing import TYPE_CHECKING, Any

from edgesim.base.late import Late

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
    from torch.nn import Parameter as Parameter
    from torch.nn import functional
    from torch.optim import SGD as SGD
    from torch.optim import Optimizer as Optimizer
    from torch.optim.lr_scheduler import LRScheduler as LRScheduler

    F = functional
else:
    Tensor = Parameter = SGD = Optimizer = LRScheduler = Any
    torch, F = Late("torch"), Late("torch.nn.functional")

Key = tuple[int, int] | tuple[Tensor, Tensor]
"""Key of random numbers, two words in [-2^31, 2^31): numbers of one device, or int32 tensors of several."""
