"""AFL's aggregation: divergence-weighted averaging, by which an update counts the less the longer it is.

Its selection of devices by scores is `edgesim.selection.afl`.
"""

from typing import Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.records import Arrivals, Sizes
from edgesim.learning.algorithms.server_half import BY_NORMS, ServerHalf, counts, normalised
from edgesim.streams import Streams


class AflOptions(AveragingOptions):
    """Options of AFL's server."""

    sensitivity: Factor = Field(0.1, ge=0)
    """lambda: how much less an update counts the longer it is; with 0 it is FedAvg."""
    delta_norm: Literal["none", "median"] = "none"
    """Unit of the updates' lengths: none (the paper), or their median over the round, so that one lambda suits models
    of any size. Where the median is 0 all lengths are 1."""


class AflServer(ServerHalf):
    """alpha_n = D_n / (1 + lambda Delta_n), as shares of the sum; Delta_n is the norm of the update received.

    In timing-only runs, which have no updates, alpha_n are the shares of samples.
    """

    merges = "updates"

    def __init__(self, options: AflOptions, sizes: Sizes, streams: Streams) -> None:
        super().__init__(options, sizes, streams)
        self.weighs_by = BY_NORMS if options.sensitivity > 0 else ""

    @override
    def weigh(self, arrived: Arrivals) -> Floats:
        """alpha_n of each update, [S], times the weight of its age."""
        weights = counts(self, arrived.samples) * arrived.age_weight
        # An endless update makes the merged model endless whatever it counts, which ends the run in a line.
        if arrived.norms is not None and np.isfinite(arrived.norms).all():
            weights = weights / (1 + self.options.sensitivity * self._lengths(arrived.norms))
        return normalised(weights)

    @override
    def report(self, ledger: None, arrived: Arrivals) -> dict[tuple[str, str], float]:
        """lambda times the median Delta, which is large where all weights are about D_n / Delta_n, and the entropy of
        the weights in nats.
        """
        if arrived.norms is None or len(arrived.norms) == 0 or not np.isfinite(arrived.norms).all():
            return {}
        alpha = self.weigh(arrived)
        entropy = -float(np.sum(alpha * np.log(alpha, where=alpha > 0, out=np.zeros_like(alpha))))
        median = float(np.median(self._lengths(arrived.norms)))
        return {("afl", "lambda_median_delta"): self.options.sensitivity * median, ("afl", "weight_entropy"): entropy}

    def _lengths(self, norms: Floats) -> Floats:
        """Norms of updates, [S], in units of their median with ``delta_norm = "median"``."""
        if self.options.delta_norm == "none" or len(norms) == 0:
            return norms
        median = np.median(norms)
        return norms / median if median > 0 else np.ones_like(norms)


class Afl(Algorithm):
    """FedAvg with AFL's weights of updates."""

    Options = AflOptions
    Server = AflServer
    halves = frozenset({"server"})
    needs = frozenset({"rounds"})
