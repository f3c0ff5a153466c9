"""FedTeddi's frames: devices of one or two old classes, then some get half a set of a new class.

FedTeddi, section V-A. The paper's split needs more images of a class than there are, so each device draws
without replacement from the whole class, independently of the others: sets of different devices may overlap.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning.partitions.partition import Partition
from edgesim.streams import Streams

#: A slot: how many parts of each class a device holds in frame 0, as (class, parts) pairs.
Slot = tuple[tuple[int, int], ...]

_NEWCOMER_SHARE = 0.4


@dataclass(frozen=True)
class Plan:
    """Plan of the frames: the slots of frame 0, and the classes that newcomers get in each further frame."""

    slots: tuple[Slot, ...]
    parts: int
    """Parts into which a device's set is divided in frame 0."""
    new_classes: tuple[range, ...]


#: In units of half a set: classes 0, 1, 2 fill 15 units each and 3, 4, 5 fill 5 each.
TEN_CLASSES = Plan(
    slots=tuple(((label, 2),) for label, clients in enumerate((5, 5, 5, 2, 2, 1)) for _ in range(clients))
    + tuple(
        ((first, 1), (second, 1))
        for first, second in ((0, 1), (0, 1), (1, 2), (1, 2), (0, 2), (0, 5), (1, 5), (2, 5), (0, 3), (2, 4))
    ),
    parts=2,
    new_classes=(range(6, 10),),
)

#: One-class devices of classes 0 to 9; two-class device j holds two parts of class 10 + j, one of j mod 10.
HUNDRED_CLASSES = Plan(
    slots=tuple(((label, 3),) for label in range(10)) + tuple(((10 + j, 2), (j % 10, 1)) for j in range(20)),
    parts=3,
    new_classes=(range(30, 40), range(40, 50)),
)


class FedTeddiPartition(Partition):
    """The paper's frames: two for 10 classes, three for 100.

    Thirty devices make the paper's setting. Another number repeats its thirty slots cyclically over the
    devices in random order, and 40 % of the devices (rounded) get a new class in each further frame. New
    classes are dealt in whole cycles, the remainder drawn at random.
    """

    default_samples: ClassVar[int] = 60

    @override
    def divide(
        self, labels: Integers, class_count: int, device_count: int, samples_per_device: int | None, streams: Streams
    ) -> list[list[Integers]]:
        """Sets of ``samples_per_device`` each, in every frame; see `Partition.divide`."""
        size = samples_per_device or self.default_samples
        plan = {10: TEN_CLASSES, 100: HUNDRED_CLASSES}.get(class_count)
        if plan is None:
            raise EdgesimError(
                f"data.partition: 'fedteddi' is for datasets of 10 or 100 classes, this one has {class_count}; "
                "use 'iid' or another one"
            )
        unit = 2 * plan.parts if plan.parts % 2 else plan.parts
        if size % unit:
            raise EdgesimError(f"data.samples_per_device: {size} must be a multiple of {unit} for 'fedteddi'")
        pools = _pools(plan, labels, size)
        slot = streams.generator("partition/slots").permutation(device_count) % len(plan.slots)
        first = []
        for place, random in zip(
            slot.tolist(), streams.generators("partition/old", np.arange(device_count)), strict=True
        ):
            draws = [
                random.choice(pools[label], parts * size // plan.parts, replace=False)
                for label, parts in plan.slots[place]
            ]
            first.append(np.sort(np.concatenate(draws)))
        frames = [first]
        newcomers = streams.generator("partition/newcomers").permutation(device_count)
        count = round(_NEWCOMER_SHARE * device_count)
        for frame, classes in enumerate(plan.new_classes, start=1):
            chosen = newcomers[(frame - 1) * count : frame * count]
            labels_dealt = _deal(classes, count, streams.generator("partition/new-classes", round=frame))
            frames.append(list(frames[-1]))
            generators = streams.generators("partition/new", chosen, frame)
            for device, label, random in zip(chosen.tolist(), labels_dealt.tolist(), generators, strict=True):
                old = random.choice(frames[-2][device], size // 2, replace=False)
                new = random.choice(pools[label], size // 2, replace=False)
                frames[-1][device] = np.sort(np.concatenate([old, new]))
        return frames


def _deal(classes: range, count: int, random: np.random.Generator) -> Integers:
    """``count`` classes in random order, each as often as any other up to one."""
    cycles, rest = divmod(count, len(classes))
    dealt = np.concatenate([np.repeat(classes, cycles), random.choice(classes, rest, replace=False)])
    return random.permutation(dealt).astype(np.int64)


def _pools(plan: Plan, labels: Integers, samples_per_device: int) -> dict[int, Integers]:
    """Training samples of each class that the plan uses; raises `EdgesimError` when a class is too small."""
    need: dict[int, int] = {}
    for slot in plan.slots:
        for label, parts in slot:
            need[label] = max(need.get(label, 0), parts * samples_per_device // plan.parts)
    for classes in plan.new_classes:
        need |= dict.fromkeys(classes, samples_per_device // 2)
    pools = {label: np.flatnonzero(labels == label) for label in need}
    for label, samples in need.items():
        if len(pools[label]) < samples:
            raise EdgesimError(
                f"data.samples_per_device: class {label} has {len(pools[label])} training samples "
                f"but a device needs {samples}; lower samples_per_device"
            )
    return pools
