"""ROC-AUC: the chance that scores rank a sample of a class above the others."""

import numpy as np

from edgesim.base.arrays import Floats, Integers


def roc_auc(scores: Floats, labels: Integers, classes: Integers) -> float:
    """Area under the ROC curve of each class against the rest, plain mean over ``classes``.

    Scores are [n, C], labels [n]; `why_without_roc_auc` answers where this is undefined. The area is the chance that a
    sample of the class has a higher score than one of the rest, ties counting half (Mann and Whitney).
    """
    areas = []
    for label in classes.tolist():
        own = labels == label
        positive, negative = int(own.sum()), int((~own).sum())
        ranks = _ranks(scores[:, label])[own].sum()
        areas.append((ranks - positive * (positive + 1) / 2) / (positive * negative))
    return float(np.mean(areas))


def why_without_roc_auc(labels: Integers, classes: Integers) -> str | None:
    """Reason why test samples with these labels [n] have no ROC-AUC over classes; None if they have one."""
    counts = np.array([np.count_nonzero(labels == label) for label in classes])
    if not counts.all():
        return f"class {classes[int(np.argmin(counts))]} is missing from the test samples"
    if len(classes) < 2:
        return f"class {classes[0]} is all of the test samples"
    return None


def _ranks(scores: Floats) -> Floats:
    """Rank of each score from 1, [n]; equal scores have the mean of their ranks."""
    # Not by `scipy.stats.rankdata`, whose import takes half a second.
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])
