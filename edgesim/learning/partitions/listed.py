"""A partition listed sample by sample in a file, for worked examples and for splits made elsewhere."""

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.base.table_file import numbers_of, read_columns, refuse_rows, whole_numbers
from edgesim.learning.partitions.partition import Partition
from edgesim.streams import Streams

DEVICE, SAMPLE = "device", "sample"


class Listed(Partition):
    """Rows of a device and a sample's place in the training set, both from 0; no draws.

    A sample may lie on several devices or on none. Further devices of the file are left out.
    """

    file: str = Field(min_length=1)
    """Path, or name of a file under ``partitions/``: CSV or Parquet with the columns device and sample."""

    def further_devices(self, device_count: int) -> int:
        """Number of devices of the file that a run of ``device_count`` leaves out."""
        device = numbers_of(
            read_columns(find("partitions", self.file, ".parquet", "data.partition_options.file"), (DEVICE,))[DEVICE]
        )
        return int(np.count_nonzero(np.unique(device) >= device_count))

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """The listed sets; see `Partition.divide`. For a bad row the error names file, row and column."""
        if samples_per_device is not None:
            raise EdgesimError(
                "data.samples_per_device: is not for data.partition = 'listed', whose file lists samples; remove it",
                "data.samples_per_device",
            )
        path = find("partitions", self.file, ".parquet", "data.partition_options.file")
        frame = read_columns(path, (DEVICE, SAMPLE))
        most = {DEVICE: 2**31 - 1, SAMPLE: len(labels) - 1}
        device, sample = (whole_numbers(path, frame, name, most[name]) for name in most)
        order = np.lexsort((sample, device))
        device, sample = device[order], sample[order]
        # Of equal rows the later ones come last, since the sort is stable.
        twice = np.append(False, (device[1:] == device[:-1]) & (sample[1:] == sample[:-1]))[: len(device)]
        refuse_rows(path, frame, SAMPLE, twice, "each sample of a device once", order)
        sets = np.searchsorted(device, np.arange(device_count + 1))
        empty = np.flatnonzero(np.diff(sets) == 0)
        if len(empty):
            raise EdgesimError(
                f"data.partition_options.file: {path} lists no sample of device {empty[0]}; every device from 0 to "
                f"devices.count - 1 ({device_count - 1}) needs one",
                "devices.count",
            )
        return [np.split(sample[: sets[-1]], sets[1:-1])]
