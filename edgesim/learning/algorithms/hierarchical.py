"""Hierarchical averaging: edge servers merge in every round, the cloud averages them now and then.

Liu et al., "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020 (HierFAVG). There an edge server counts in the
cloud with the data of all its devices; here with the data of the updates that it merged since the last average, which
is the same when everybody takes part, and makes an average in every round equal to flat averaging when not.
"""

from edgesim.base.arrays import Floats
from edgesim.learning.torch_types import Tensor


def average(models: list[Tensor], counted: Floats) -> Tensor:
    """The cloud's model, [P]: edge models [E] of [P], weighted by their updates since the last average [E].

    An edge server that merged nothing still has the model of the last average and says nothing new; when none did,
    all have it.
    """
    total = counted.sum()
    if len(models) == 1 or total == 0:
        return models[0]
    parts = [model * float(share) for model, share in zip(models, counted / total, strict=True) if share > 0]
    return sum(parts[1:], start=parts[0])
