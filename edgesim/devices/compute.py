"""Compute delay: the shifted exponential of FedTeddi, eq. 4."""

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Floats, Integers
from edgesim.streams import Streams


def compute_delay_s(
    a_s: ArrayLike, mu_per_s: ArrayLike, samples: ArrayLike, streams: Streams, ids: ArrayLike, round: int | Integers
) -> Floats:
    """Seconds that each device takes to process its samples in a round, [n].

    ``a_s`` is the least time per sample, ``mu_per_s`` the rate of the random part, ``samples`` what is
    processed (steps x batch, or epochs x data-set size): scalars or arrays of one row per device id, [n].
    Draws: stream ``compute``. FedTeddi, eq. 4: a m + (m / mu) E with E ~ Exp(1).
    """
    least_s, spread_s = _law(a_s, mu_per_s, samples)
    return least_s + spread_s * streams.exponential("compute", ids, round)


def compute_delay_quantile_s(a_s: ArrayLike, mu_per_s: ArrayLike, samples: ArrayLike, q: ArrayLike) -> Floats:
    """The q-quantile of the delay law, in s, for q in [0, 1): a m - (m / mu) ln(1 - q), elementwise."""
    least_s, spread_s = _law(a_s, mu_per_s, samples)
    return np.asarray(least_s - spread_s * np.log1p(-np.asarray(q, dtype=np.float64)))


def _law(a_s: ArrayLike, mu_per_s: ArrayLike, samples: ArrayLike) -> tuple[Floats, Floats]:
    """Least delay a m, and the mean m / mu of the random delay added to it, in s."""
    processed = np.asarray(samples, dtype=np.float64)
    least_s = np.asarray(a_s, dtype=np.float64) * processed
    return np.asarray(least_s), np.asarray(processed / np.asarray(mu_per_s, dtype=np.float64))
