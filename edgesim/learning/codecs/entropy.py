"""Entropy of what is sent, which no message of single symbols undercuts in the mean (Shannon, 1948)."""

from edgesim.learning.torch_types import Tensor


def entropy_bits(symbols: Tensor) -> float:
    """Bits for each of some symbols, whole numbers from 0, [d], by how often they occur."""
    counts = symbols.bincount().double()
    shares = counts[counts > 0] / len(symbols)
    return -float((shares * shares.log2()).sum())
