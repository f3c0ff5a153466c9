"""Interface of partitions, and the option that several of them share."""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

from pydantic import Field

from edgesim.base.arrays import Integers
from edgesim.config import Section
from edgesim.streams import Streams

#: Concentration of a Dirichlet law: small is skewed, large is even.
Alpha = Annotated[float, Field(ge=1e-3, le=1e6)]


class Partition(Section, ABC):
    """A law by which training samples are spread over devices; its fields are ``data.partition_options``."""

    default_samples: ClassVar[int | None] = None
    """``data.samples_per_device`` when absent; None leaves it to the law, as a rule to deal the whole training set."""

    @abstractmethod
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """Indices into ``labels``, ascending, at least one per device: one list of devices per frame, from frame 0.

        A single list holds in frames 0 and 1 alike: nothing changes. Raises `EdgesimError` where the samples do not
        suffice.
        """

    def divide_domains(
        self,
        labels: Integers,
        domains: Integers,
        class_count: int,
        device_count: int,
        samples_per_device: int | None,
        streams: Streams,
    ) -> list[list[Integers]]:
        """`divide` for samples from several domains [n], numbered from 0; most laws use labels alone."""
        return self.divide(labels, class_count, device_count, samples_per_device, streams)
