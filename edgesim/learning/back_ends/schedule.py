"""Schedule of a stack: the samples of each client in each step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers


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
    """Edges of the steps among the entries, [steps + 1]."""
    places: Integers
    """Samples among those of all jobs behind one another, [entries]."""
    share: Floats
    """1 / the client's samples in the step; 0 for entries that only fill up, [entries]."""
    real: Integers | slice
    """Entries that do not only fill up."""
    cell: Integers
    """Number of the client and step of each such entry."""

    def per_step(self, values: Floats | Booleans) -> Floats:
        """Means of values [entries] by client and step, [clients, steps]; 0 where a client has no step."""
        shares = values[self.real] * self.share[self.real]
        return np.bincount(self.cell, shares, self.sizes.size).astype(np.float64).reshape(self.sizes.shape)

    def overall(self, means: Floats, measured: Booleans | bool = True) -> Floats:
        """Means over each client's samples, [clients], of means by step; of all steps or of some, [clients, steps]."""
        sizes = self.sizes * measured
        totals: Floats = (means * sizes).sum(axis=1) / sizes.sum(axis=1)
        return totals

    def hit_share(self, hits: Booleans, measured: Booleans | bool = True) -> Floats:
        """Share of each client's samples that are hit, [clients], of hits [entries], in all steps or in some."""
        # Shares of steps that add up to one may exceed it by rounding.
        return np.minimum(self.overall(self.per_step(hits), measured), 1.0)


def make_schedule(edges: Sequence[Integers]) -> Schedule:
    """The schedule of jobs by falling number of steps, of which each is given as its edges, [its steps + 1]."""
    last = len(edges[0]) - 1
    # Edges of a job that is over stay where they are: its further steps have no samples.
    bounds = np.stack([np.append(own, np.full(last + 1 - len(own), own[-1])) for own in edges])
    sizes = np.diff(bounds, axis=1)
    rows, clients = sizes.max(axis=0), np.count_nonzero(sizes, axis=0)
    wanted = np.arange(rows.max())[:, None] < rows[:, None, None]
    step, place, client = np.nonzero(wanted & (np.arange(len(edges)) < clients[:, None, None]))
    size = sizes[client, step]
    real = place < size
    origins = np.cumsum([0, *bounds[:-1, -1]])
    cell = client * last + step
    return Schedule(
        sizes=sizes,
        clients=clients.tolist(),
        edges=np.append(0, np.cumsum(rows * clients)).tolist(),
        # A client's own first sample fills up: its loss is finite as long as the client's is.
        places=(origins[:, None] + bounds)[client, step] + np.where(real, place, 0),
        share=real / size,
        real=slice(None) if real.all() else np.flatnonzero(real),
        cell=cell[real],
    )
