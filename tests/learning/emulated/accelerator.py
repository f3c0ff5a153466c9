"""A stand-in for a GPU: a device of its own whose numbers are kept and worked out by the processor.

What a GPU refuses is refused: operations on tensors of two devices, and those that are not the same in every run. What
it computes differently, or not at all, is not found out here.
Built on torch's experimental back ends in Python; set up before the process's first backward pass.
"""

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("emulated")

DEVICE = torch.device("emulated", 0)
#: How often each operation ran on the device.
operations: Counter[str] = Counter()

_CPU = torch.device("cpu")
#: Take tensors of two devices on a GPU as well.
_ACROSS = {"copy_", "_to_copy", "index", "index_put_", "_index_put_impl_"}
#: Have no deterministic version on a GPU (`torch.use_deterministic_algorithms`), among operations that networks use.
_NOT_REPRODUCIBLE = {
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d_backward", "avg_pool3d_backward", "bincount", "_ctc_loss_backward", "cumsum",
    "_embedding_bag", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward", "grid_sampler_2d_backward",
    "grid_sampler_3d_backward", "histc", "kthvalue", "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d",
    "median", "nll_loss2d_backward", "put_", "reflection_pad1d_backward", "reflection_pad2d_backward",
    "reflection_pad3d_backward", "replication_pad1d_backward", "replication_pad2d_backward",
    "replication_pad3d_backward", "scatter_reduce", "upsample_bicubic2d_backward", "upsample_bilinear2d_backward",
    "upsample_linear1d_backward", "upsample_trilinear3d_backward",
}  # fmt: skip


class OnDevice(torch.Tensor):
    """A tensor of the device; ``kept`` is the processor's."""

    kept: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, kept: torch.Tensor) -> "OnDevice":
        form = {"strides": kept.stride(), "storage_offset": kept.storage_offset(), "dtype": kept.dtype}
        made = torch.Tensor._make_wrapper_subclass(cls, kept.size(), device=DEVICE, **form)
        made.kept = kept
        return made

    def data_ptr(self) -> int:
        return self.kept.data_ptr()

    def tolist(self) -> list[Any]:
        return self.cpu().tolist()

    @property
    def data(self) -> torch.Tensor:
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, other: "OnDevice") -> None:
        torch.Tensor.data.__set__(self, other)
        self.kept = other.kept

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        operations[name] += 1
        target = kwargs.get("device")
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        elsewhere = [tensor for tensor in tensors if not isinstance(tensor, cls) and tensor.dim()]
        leaves = target is not None and torch.device(target).type == "cpu"
        if name not in _ACROSS and elsewhere:
            raise RuntimeError(f"{name} of tensors on two devices")
        # Without weights whole numbers are counted, whose sum does not depend on the order.
        counts = name == "bincount" and args[1:2] in ((), (None,))
        if name in _NOT_REPRODUCIBLE and not counts and torch.are_deterministic_algorithms_enabled():
            raise RuntimeError(f"{name} does not have a deterministic implementation")
        out = func(*tree_map(_at_home, args), **tree_map(_at_home, kwargs))
        if leaves:
            return out
        if name == "copy_" and not isinstance(args[0], cls):
            return args[0]
        return return_and_correct_aliasing(func, args, kwargs, tree_map(_on_device, out))


def _at_home(value: object) -> object:
    if isinstance(value, OnDevice):
        return value.kept
    return _CPU if isinstance(value, torch.device) else value


def _on_device(value: object) -> object:
    return OnDevice(value) if isinstance(value, torch.Tensor) else value


def _make(func, *args, **kwargs):
    """An operation without tensors of the device, such as `torch.zeros`."""
    operations[func.overloadpacket.__name__] += 1
    assert not any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves((args, kwargs))), func
    kwargs.pop("pin_memory", None)
    return tree_map(_on_device, func(*tree_map(_at_home, args), **tree_map(_at_home, kwargs)))


_library = torch.library.Library("_", "IMPL")
_library.fallback(_make, "PrivateUse1")
