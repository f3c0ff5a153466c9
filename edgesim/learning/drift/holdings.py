"""The data sets of all devices at one instant."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgesim.arrays import Integers


@dataclass(frozen=True, eq=False)
class Holdings(ABC):
    """How many samples of which class each device holds; which ones they are is worked out for the devices asked."""

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
        """Where each device's samples begin among `samples`, [N]."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @cached_property
    def clients(self) -> list[Integers]:
        """Indices into the training set, one array per device."""
        return np.split(self.samples, self.firsts[1:])

    def samples_of(self, device: int) -> Integers:
        """As `Holdings.samples_of`."""
        return self.clients[device]

    def at_places(self, ids: Integers, places: Integers) -> Integers:
        """As `Holdings.at_places`, in one step."""
        return np.asarray(self.samples[self.firsts[ids, None] + places])
