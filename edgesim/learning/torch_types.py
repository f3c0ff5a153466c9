"""Names of torch's types for annotations. They load no torch, which timing-only runs do without."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor as Tensor
    from torch.nn import Parameter as Parameter
    from torch.optim import SGD as SGD
    from torch.optim import Optimizer as Optimizer
    from torch.optim.lr_scheduler import LRScheduler as LRScheduler
else:
    Tensor = Parameter = SGD = Optimizer = LRScheduler = Any

Key = tuple[int, int] | tuple[Tensor, Tensor]
"""Key of random numbers, two words in [-2^31, 2^31): numbers of one device, or int32 tensors of several."""
