"""Exact accounting of privacy.

The order is always: clip, noise (`edgesim.learning.transforms`), then lengths and weights from what the server has.
Accounting is the analytic Gaussian mechanism (Balle and Wang, ICML 2018): T releases with noise multiplier z are one
with mu = sqrt(T) / z. Neighbouring data differ in one update, which is replaced by zero. No amplification by sampling
is claimed, since policies look at data.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from edgesim.config import PrivacyConfig, RunConfig
from edgesim.learning.algorithms.server_half import BY_CLASSES, BY_NORMS

COVERS = "updates only; losses and what else policies look at are not covered"


def delta_of(epsilon: float, mu: float) -> float:
    """The delta with which a Gaussian mechanism is private at ``epsilon``; ``mu`` is sensitivity over noise."""
    log_tail = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return float(ndtr(mu / 2 - epsilon / mu)) - math.exp(log_tail)


def epsilon_of(noise: float, releases: int, delta: float) -> float:
    """The epsilon of so many releases with a noise multiplier, for a ``delta`` in (0, 1); 0 for none."""
    if releases == 0:
        return 0.0
    mu = math.sqrt(releases) / noise
    if delta_of(0.0, mu) <= delta:
        return 0.0
    high = 1.0
    while delta_of(high, mu) > delta:
        high *= 2
    # Here, since it takes longer to load than all else that a run without privacy needs of SciPy.
    from scipy.optimize import brentq

    return float(brentq(lambda epsilon: delta_of(epsilon, mu) - delta, 0.0, high, xtol=1e-13, rtol=1e-14))


def why_unknown(config: RunConfig, weighs_by: str, has_buffers: bool, frames: int) -> str | None:
    """Reason for which a run has no epsilon; None if it has one. ``weighs_by`` is that of the server half."""
    if config.privacy.mechanism == "clip":
        return "clipping without noise protects nothing"
    if has_buffers:
        return "buffers of the model, such as batch norm's moments, travel without clipping and noise"
    if frames > 1 and config.learning.keep_best:
        return "the model with which a frame goes on is chosen by training images (learning.keep_best)"
    upload = config.upload
    if upload is not None and upload.lost == "add":
        return "updates whose uploads are lost are sent later, and uploads alone are counted (upload.lost)"
    if config.privacy.mechanism == "local":
        return None
    if upload is not None and upload.feedback != "none":
        return "what coding loses of an update reaches the model in later rounds (upload.feedback)"
    if weighs_by in (BY_NORMS, BY_CLASSES):
        return f"weights that look at {weighs_by} have no bounded sensitivity under central noise"
    if config.staleness.weight == "refl":
        return "weights of stale updates that look at the updates (staleness.weight) have no bounded sensitivity"
    return None


def account(
    config: PrivacyConfig, unknown: str | None, uploads: Mapping[int, int], models: int
) -> dict[str, float | str | None]:
    """Privacy, for ``run.json``, of a run in which devices began so many ``uploads`` and so many ``models`` were made.

    ``epsilon`` is the largest over the devices that uploaded (local), or that of all models (central); ``unknown``
    tells why there is none.
    """
    facts: dict[str, Any] = {"mechanism": config.mechanism, "delta": config.delta, "covers": COVERS}
    if unknown is not None or config.noise is None:
        return facts | {"epsilon": None, "reason": unknown}
    assert config.delta is not None
    if config.mechanism == "central":
        return facts | {"releases": models, "epsilon": epsilon_of(config.noise, models, config.delta)}
    counts = np.array(sorted(uploads.values()), dtype=np.int64)
    by_count = {count: epsilon_of(config.noise, count, config.delta) for count in set(counts.tolist())}
    epsilons = [by_count[count] for count in counts.tolist()] or [0.0]
    most = int(counts.max(initial=0))
    return facts | {"releases": most, "epsilon": max(epsilons), "epsilon_median": float(np.median(epsilons))}
