"""Soft cross-entropy, which draws a model's logits towards those of another model."""

from edgesim.learning.torch_types import Tensor


def soft_cross_entropy(taught: Tensor, own: Tensor, temperature: float) -> Tensor:
    """- sum_y softmax(t / T)_y log softmax(s / T)_y of logits t and s [n, C], [n] (without a factor T^2)."""
    from torch.nn.functional import log_softmax, softmax

    distance: Tensor = -(softmax(taught / temperature, -1) * log_softmax(own / temperature, -1)).sum(-1)
    return distance
