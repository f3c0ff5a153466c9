"""Jobs of devices in an opened round, as if their simulated work were done."""

from collections.abc import Iterable

import numpy as np

from edgesim.learning.jobs import Promise
from edgesim.learning.training_round import TorchRound


def begun(training: TorchRound, ids: Iterable[int]) -> dict[int, Promise]:
    """Promises of devices that begin in a round, and whose simulated work is finished, by device."""
    promises = training.start(np.array(ids))
    for promise in promises:
        promise.due = True
    return {promise.device: promise for promise in promises}
