"""Laws that spread a training set over devices, and their registry."""

from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of
from edgesim.config import DataConfig
from edgesim.learning.partitions.classes import Classes
from edgesim.learning.partitions.dirichlet import Dirichlet
from edgesim.learning.partitions.dirichlet_labels import DirichletLabels
from edgesim.learning.partitions.fedteddi import FedTeddiPartition
from edgesim.learning.partitions.iid import Iid
from edgesim.learning.partitions.listed import Listed
from edgesim.learning.partitions.partition import Partition
from edgesim.learning.partitions.quantity import Quantity
from edgesim.learning.partitions.shards import Shards

_OWN: dict[str, type[Partition]] = {
    "fedteddi": FedTeddiPartition,
    "iid": Iid,
    "dirichlet": Dirichlet,
    "dirichlet-labels": DirichletLabels,
    "classes": Classes,
    "shards": Shards,
    "quantity": Quantity,
    "listed": Listed,
}
PARTITIONS = Registry("data.partition", "partitions", Partition, _OWN)

_DEFAULT = "iid"


def make_partition(data: DataConfig) -> Partition:
    """The partition that a config names, with its options; raises `EdgesimError` for an unknown name or option."""
    return entry_of(PARTITIONS, data.partition or _DEFAULT, data.partition_options, "data.partition_options")


#: Samples of a device that has no data set.
_BLANK_SAMPLES = 60


def resolve(data: DataConfig) -> DataConfig:
    """The same section with the partition's defaults written out; raises as `make_partition` does."""
    partition = make_partition(data)
    samples = data.samples_per_device
    if samples is None:
        samples = _BLANK_SAMPLES if data.dataset == "none" else partition.default_samples
    resolved = {
        "partition": data.partition or _DEFAULT,
        "partition_options": partition.model_dump(exclude_none=True),
        "samples_per_device": samples,
    }
    return data.model_copy(update=resolved)
