"""Class shares, and how far a device's moved from one frame to the next."""

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.selection.view import RoundView


def class_shares(counts: Integers) -> Floats:
    """Rows of ``counts``, [n, C], divided by their sums; a device without samples has shares 0."""
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def share_changes(view: RoundView) -> Floats:
    """|p_{n,l}^(c) - p_{n,l-1}^(c)| of the candidates' data sets, [n, C]: this frame against the one before.

    A class new to a device had share 0. FedTeddi, eq. 13; the old shares are the data set's of frame l - 1.
    """
    now = class_shares(view.knowledge.class_counts(view.ids, "dataset"))
    return np.abs(now - class_shares(view.knowledge.previous_class_counts(view.ids)))
