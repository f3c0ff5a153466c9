"""Clusters of rows without a number of clusters to choose: FINCH (Sarfraz et al., CVPR 2019, eq. 1)."""

import numpy as np

from edgesim.base.arrays import Floats, Integers


def finch(rows: Floats) -> Integers:
    """The cluster of each of ``rows`` [n, F], counted from 0 in the order of their first rows, [n].

    Each row is joined to the other one that it is nearest to by cosine (of equally near ones the first), and each
    connected component is a cluster; the means of clusters are joined in the same way, as long as any are. Of these
    partitions the coarsest with more than one cluster is taken, or the first one where that has but one.
    """
    if len(rows) == 1:
        return np.zeros(1, dtype=np.int64)
    coarsest = _joined(rows)
    while coarsest.max() > 1:
        coarser = _joined(_means(rows, coarsest))[coarsest]
        if coarser.max() in (0, coarsest.max()):
            break
        coarsest = coarser
    return coarsest


def _joined(rows: Floats) -> Integers:
    """The component of each row in the graph of nearest neighbours, [n]."""
    # Here, since it takes long to load, and few runs cluster.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.where(norms > 0, norms, 1.0)
    likeness = units @ units.T
    np.fill_diagonal(likeness, -np.inf)
    own = np.arange(len(rows))
    graph = coo_array((np.ones(len(rows)), (own, likeness.argmax(axis=1))), shape=likeness.shape)
    _, component = connected_components(graph, directed=False)
    return _numbered(component)


def _means(rows: Floats, cluster: Integers) -> Floats:
    """Mean of the rows of each cluster, [clusters, F]."""
    members = np.arange(cluster.max() + 1)[:, None] == cluster
    return np.asarray(members @ rows / members.sum(axis=1, keepdims=True))


def _numbered(label: Integers) -> Integers:
    """Cluster numbers of rows, renumbered in the order of the clusters' first rows, [n]."""
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[place], dtype=np.int64)
