"""Entropy of what is sent, which no message of single symbols undercuts in the mean (Shannon, 1948)."""

from edgesim.learning.torch_types import Tensor


def entropy_bits(counts: Tensor) -> float:
    """Bits for each of some symbols, by how often each kind of them occurs, ``counts``."""
    shares = counts[counts > 0].double() / counts.sum()
    return -float((shares * shares.log2()).sum())
