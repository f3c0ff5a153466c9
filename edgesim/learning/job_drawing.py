"""What a device's job is drawn to be: its samples, its steps, how images are augmented, and its seed."""

from edgesim.algorithms.algorithm import Phase
from edgesim.arrays import Integers
from edgesim.config import LearningConfig
from edgesim.learning.augmentation import Augmentation, draw_changes
from edgesim.learning.batches import batch_samples, step_edges
from edgesim.learning.federation import Federation
from edgesim.streams import Streams


def draw_jobs(
    federation: Federation,
    streams: Streams,
    ids: Integers,
    tasks: Integers,
    frame: int,
    learning: LearningConfig,
    augment: Augmentation,
) -> list[tuple[Phase, int]]:
    """The local training that the config asks for and the seed of the job, for each of the devices ``ids`` [n].

    All random numbers are a function of the device and of ``tasks`` [n], the number of its job.
    """
    drawn = batch_samples(federation, streams, ids, tasks, frame, learning)
    seeds = streams.seeds("job", ids, tasks).tolist()
    changes = draw_changes(augment, streams, "augmentation", ids, tasks, [len(samples) for samples in drawn])
    sizes = federation.frames[frame].sizes[ids].tolist()
    edges = {size: step_edges(size, learning) for size in set(sizes)}
    return [
        (Phase(samples, edges[size], moves), seed)
        for samples, size, moves, seed in zip(drawn, sizes, changes, seeds, strict=True)
    ]
