"""FINCH: the worked example, and random rows against a plain program that shares nothing with it."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.learning.algorithms.finch import finch

ANGLES = np.deg2rad([0, 4, 30, 35, 120, 126, 160, 167])
LENGTHS = np.array([1, 2, 1, 1, 1, 1, 3, 1])
ROWS = LENGTHS[:, None] * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


def prototypes(rows):
    """Means of the clusters, in the order of their first rows."""
    cluster = finch(rows)
    return np.array([rows[cluster == number].mean(axis=0) for number in range(cluster.max() + 1)])


def test_eight_rows_are_two_clusters_of_four():
    assert finch(ROWS).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    expected = [[1.1700763871, 0.3032723460], [-1.2203082949, 0.7315134706]]
    assert prototypes(ROWS) == pytest.approx(np.array(expected), abs=1e-10)


def test_without_the_last_row_the_first_partition_of_three_is_the_coarsest():
    assert finch(ROWS[:7]).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert prototypes(ROWS[:7]).mean(axis=0) == pytest.approx([0.3459550231, 0.5023041004], abs=1e-10)
    assert ROWS[:7].mean(axis=0) == pytest.approx([0.1104917763, 0.5591703160], abs=1e-10)


def plain(rows):
    """The same, with graphs and loops, as sets of rows."""

    def joined(groups):
        means = [np.mean([rows[row] for row in sorted(group)], axis=0) for group in groups]
        graph = nx.Graph()
        graph.add_nodes_from(range(len(groups)))
        for one, mean in enumerate(means):
            others = [n for n in range(len(groups)) if n != one]
            cosines = [float(mean @ means[n] / (np.linalg.norm(mean) * np.linalg.norm(means[n]))) for n in others]
            graph.add_edge(one, others[int(np.argmax(cosines))])
        return [frozenset().union(*(groups[n] for n in part)) for part in nx.connected_components(graph)]

    partition = [frozenset([row]) for row in range(len(rows))]
    if len(rows) > 1:
        partition = joined(partition)
    while len(partition) > 1:
        coarser = joined(partition)
        if len(coarser) == 1:
            break
        partition = coarser
    return {tuple(sorted(group)) for group in partition}


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 20), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_it_is_what_a_plain_program_finds(count, features, seed):
    rows = np.random.default_rng(seed).normal(size=(count, features))
    cluster = finch(rows)
    found = {tuple(np.flatnonzero(cluster == number).tolist()) for number in range(cluster.max() + 1)}
    assert found == plain(rows)
    # Numbered in the order of their first rows.
    assert [int(np.flatnonzero(cluster == number)[0]) for number in range(cluster.max() + 1)] == sorted(
        group[0] for group in found
    )


def test_one_row_is_a_cluster_and_rows_alike_are_joined_to_the_first():
    assert finch(np.array([[3.0, 4.0]])).tolist() == [0]
    assert finch(np.ones((4, 2))).tolist() == [0, 0, 0, 0]
