"""Updates that reach a server, without devices that trained them."""

import numpy as np
import torch

from edgesim.learning.algorithms.records import Arrivals


def arrive(updates=None, starts=None, ids=None, samples=None, all_samples=None, **fields) -> Arrivals:
    """What a server merges: fresh updates of devices 0, 1, ..., all picked; for None as many as there are samples."""
    updates = torch.zeros(len(samples), 1) if updates is None else torch.as_tensor(updates)
    count = len(updates)
    ids = np.arange(count) if ids is None else np.array(ids, dtype=np.int64)
    samples = np.array([1] * count if samples is None else samples, dtype=np.int64)
    given = {
        "round": 1,
        "began_in": np.ones(count, dtype=np.int64),
        "staleness": np.zeros(count, dtype=np.int64),
        "age_weight": np.ones(count),
        "picked": np.ones(count, dtype=bool),
        "lr": np.full(count, 0.1),
        "began": ids,
        "class_counts": np.zeros((count, 0), dtype=np.int64),
        "all_samples": samples if all_samples is None else np.array(all_samples),
        "round_lr": 0.1,
        "alpha": np.ones(count),
        "separate": [update.clone() for update in updates],
        "starts": [torch.zeros_like(update) for update in updates] if starts is None else starts,
    }
    return Arrivals(ids=ids, samples=samples, updates=updates, **(given | fields))
