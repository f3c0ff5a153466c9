"""Which samples of which clients a stack trains on, step after step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.arrays import Floats, Integers
from edgesim.learning.jobs import Job


@dataclass(frozen=True)
class Schedule:
    """Steps of a stack behind one another; a step's entries are [rows, clients], rows first.

    Clients with fewer samples than others in a step have entries of no weight there.
    """

    sizes: Integers
    """Samples of each client in each step, [clients, steps]; 0 where a client has no step."""
    clients: list[int]
    """Clients that take part in each step, [steps]: the first ones."""
    edges: list[int]
    """Where steps begin and end among the entries, [steps + 1]."""
    places: Integers
    """Samples among those of all jobs behind one another, [entries]."""
    share: Floats
    """1 / the client's samples in the step; 0 for entries that only fill up, [entries]."""
    cell: Integers
    """Number of the client and step of an entry, [entries]."""

    def per_step(self, values: Floats) -> Floats:
        """Means of values [entries] by client and step, [clients, steps]; 0 where a client has no step."""
        real = self.share > 0
        means = np.bincount(self.cell[real], values[real] * self.share[real], self.sizes.size).astype(np.float64)
        return means.reshape(self.sizes.shape)

    def overall(self, means: Floats) -> Floats:
        """Means over each client's samples, [clients], of means by step."""
        totals: Floats = (means * self.sizes).sum(axis=1) / self.sizes.sum(axis=1)
        return totals


def make_schedule(jobs: Sequence[Job]) -> Schedule:
    """The schedule of jobs that are ordered by falling number of steps."""
    last = len(jobs[0].edges) - 1
    # Edges of a job that is over stay where they are: its further steps have no samples.
    edges = np.empty((len(jobs), last + 1), dtype=np.int64)
    for row, job in zip(edges, jobs, strict=True):
        row[: len(job.edges)] = job.edges
        row[len(job.edges) :] = job.edges[-1]
    sizes = np.diff(edges, axis=1)
    rows, clients = sizes.max(axis=0), np.count_nonzero(sizes, axis=0)
    wanted = np.arange(rows.max())[:, None] < rows[:, None, None]
    step, place, who = np.nonzero(wanted & (np.arange(len(jobs)) < clients[:, None, None]))
    size = sizes[who, step]
    real = place < size
    origins = np.cumsum([0] + [len(job.samples) for job in jobs[:-1]])
    return Schedule(
        sizes=sizes,
        clients=clients.tolist(),
        edges=np.append(0, np.cumsum(rows * clients)).tolist(),
        # A client's own first sample fills up: its loss is finite as long as the client's is.
        places=(origins[:, None] + edges)[who, step] + np.where(real, place, 0),
        share=real / size,
        cell=who * last + step,
    )
