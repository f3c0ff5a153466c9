"""FedTeddi's greedy for its problem P3: who is added next, and when to stop (Algorithm 1, eqs. 15 to 17)."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.selection.ties import TIE, first_lowest
from edgesim.selection.view import Choice


@dataclass(frozen=True)
class Terms:
    """One round of P3, ``J(S) = sigma / sqrt(S b) + U(S)``, prepared for sums over S, row by candidate."""

    size: Floats
    """D_n, [n]."""
    gap: Floats
    """D_n L^(c) (p_n^(c) - p^(c)), [n, C]: the divergence of S is ``sum_c |sum_S gap| / sum_S size``."""
    drift: Floats
    """D_n lambda_k d_n, [n]."""
    noise: float
    """sigma / sqrt(b)."""
    empty_cost: float
    """U of the empty set: no samples, no drift, and so the whole global mix is missing."""
    scale: float
    """An upper bound of |U(S)| over all S: what differences of U are compared to."""


@dataclass(frozen=True)
class Sums:
    """Sums over the devices taken so far: their number, and the columns of `Terms`."""

    members: int
    size: float
    gap: Floats
    drift: float


def objective_terms(
    samples: Integers,
    shares: Floats,
    global_shares: Floats,
    drift: Floats,
    class_weights: Floats,
    drift_weight: float,
    noise: float,
) -> Terms:
    """Terms of U(S) = delta(S) - lambda_k sum_S alpha_n(S) d_n (FedTeddi, eqs. 11 and 15).

    ``samples`` D_n, [n]; ``shares`` p_n, [n, C]; ``global_shares`` p over all devices of the run, [C];
    ``drift`` d_n, [n]; ``class_weights`` L, [C]; ``drift_weight`` lambda_k; ``noise`` sigma / sqrt(b).
    alpha_n(S) = D_n / sum_S D_m: adding a device changes every member's weight.
    """
    size = samples.astype(np.float64)
    empty_cost = float(class_weights @ global_shares)
    return Terms(
        size=size,
        gap=size[:, None] * class_weights * (shares - global_shares),
        drift=size * drift_weight * drift,
        noise=noise,
        empty_cost=empty_cost,
        scale=empty_cost
        + float((shares @ class_weights).max(initial=0.0))
        + drift_weight * float(drift.max(initial=0.0)),
    )


def empty_sums(terms: Terms) -> Sums:
    """Sums over the empty set."""
    return Sums(0, 0.0, np.zeros(terms.gap.shape[1]), 0.0)


def add(sums: Sums, terms: Terms, row: int) -> Sums:
    """Sums with one more member."""
    return Sums(
        sums.members + 1,
        sums.size + float(terms.size[row]),
        sums.gap + terms.gap[row],
        sums.drift + float(terms.drift[row]),
    )


def cost_with_each(terms: Terms, sums: Sums) -> Floats:
    """U(S + n) for every row n, [n]."""
    divergence = np.abs(terms.gap + sums.gap).sum(axis=1)
    return np.asarray((divergence - sums.drift - terms.drift) / (terms.size + sums.size))


def greedy(terms: Terms, ids: Integers, on_bw_fail: Literal["skip", "stop"]) -> Choice:
    """Yield devices by least U(S + n) - U(S) until J would rise, no device is left, or a refusal ends it.

    With ``"skip"`` a refused device is struck out; Algorithm 1 as printed keeps it and never ends. The first
    device always passes, since J of the empty set is infinite. The noise term is the same for all candidates:
    the least U is the least J, and when that one fails (eq. 17) everybody does.
    """
    sums, cost = empty_sums(terms), terms.empty_cost
    costs = cost_with_each(terms, sums)
    gone = np.zeros(len(ids), dtype=bool)
    for _ in range(len(ids)):
        row = first_lowest(costs, terms.scale)
        if sums.members and costs[row] - cost + _noise_step(terms, sums) > TIE * terms.scale:
            return
        taken = yield int(ids[row])
        gone[row] = True
        if taken:
            sums, cost = add(sums, terms, row), float(costs[row])
            costs = cost_with_each(terms, sums)
        elif on_bw_fail == "stop":
            return
        costs[gone] = np.inf


def _noise_step(terms: Terms, sums: Sums) -> float:
    return terms.noise * (1 / math.sqrt(sums.members + 1) - 1 / math.sqrt(sums.members))
