"""The data sets of all devices at one instant."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.selection.column import Column


class ByDevice(Column, NDArrayOperatorsMixin):
    """Whole numbers of all devices, [N, ...], which are indexed by devices or used as an array.

    Rows are computed once, when their devices are first read: of a million devices a single one may begin a task.
    """

    def __init__(self, shape: tuple[int, ...], compute: Callable[[Integers], Integers]) -> None:
        """``compute`` gives the rows of some devices, [n, ...]."""
        super().__init__(shape[0], compute)
        self.shape = shape

    @override
    def __getitem__(self, ids: Any) -> Any:
        """Rows of a device or of an array of devices; any other index applies to the whole array."""
        return super().__getitem__(ids) if isinstance(ids, int | np.integer | np.ndarray) else self.whole()[ids]

    @override
    def _unknown(self) -> Integers:
        return np.empty(self.shape, dtype=np.int64)

    def __getattr__(self, name: str) -> Any:
        """Attributes of the whole array."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.whole(), name)

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **how: Any) -> Any:
        arrays = (array.whole() if isinstance(array, ByDevice) else array for array in inputs)
        return getattr(ufunc, method)(*arrays, **how)


@dataclass(frozen=True, eq=False)
class Holdings(ABC):
    """Numbers of samples of each device and class; the samples themselves are computed device by device.

    The numbers are arrays, or are used as arrays (`ByDevice`).
    """

    sizes: Integers
    """Samples of each device, [N]."""
    class_counts: Integers
    """Samples of each device and class, [N, C]."""
    classes_seen: Integers
    """Classes that the data of the run have had until now, ascending."""

    @abstractmethod
    def samples_of(self, device: int) -> Integers:
        """Indices into the training set, of one device."""

    def at_places(self, ids: Integers, places: Integers) -> Integers:
        """The samples at ``places`` [n, k] of the data sets of the devices ``ids`` [n], all of one size; [n, k]."""
        return np.stack([self.samples_of(device)[own] for device, own in zip(ids.tolist(), places, strict=True)])


@dataclass(frozen=True, eq=False)
class Frame(Holdings):
    """The devices' data sets between two changes, sample by sample."""

    samples: Integers
    """Indices into the training set, device after device, [sum of sizes]; empty without a dataset."""

    @cached_property
    def firsts(self) -> Integers:
        """Place of each device's first sample in `samples`, [N]."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @cached_property
    def clients(self) -> list[Integers]:
        """Indices into the training set, one array per device."""
        return np.split(self.samples, self.firsts[1:])

    @override
    def samples_of(self, device: int) -> Integers:
        return self.clients[device]

    @override
    def at_places(self, ids: Integers, places: Integers) -> Integers:
        return np.asarray(self.samples[self.firsts[ids, None] + places])
