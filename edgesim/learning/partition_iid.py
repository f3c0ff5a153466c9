"""Equal random parts: every device holds the same mix of classes, up to chance, in every frame."""

import numpy as np

from edgesim.errors import EdgesimError
from edgesim.selection.view import Integers
from edgesim.streams import Streams


def partition(
    labels: Integers, class_count: int, device_count: int, samples_per_device: int, streams: Streams
) -> list[list[Integers]]:
    """Sample indices per device for frames 0 and 1, which are the same.

    Parts are dealt from successive random permutations of the training set: they are disjoint as long as the
    set is large enough for all devices, and a part never holds a sample twice. Raises `EdgesimError`.
    """
    if samples_per_device > len(labels):
        raise EdgesimError(
            f"data.samples_per_device: {samples_per_device} is more than the {len(labels)} training samples; lower it"
        )
    parts_per_deal = len(labels) // samples_per_device
    parts: list[Integers] = []
    for deal in range(-(-device_count // parts_per_deal)):
        order = streams.generator("partition/iid", round=deal).permutation(len(labels))
        parts.extend(order[: parts_per_deal * samples_per_device].reshape(parts_per_deal, samples_per_device))
    frame = [np.sort(part) for part in parts[:device_count]]
    return [frame, frame]
