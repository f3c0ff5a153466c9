"""Terms of objectives that distil knowledge: soft cross-entropy, and the likeness of what a generator makes."""

from edgesim.learning.torch_types import F, Tensor, torch


def soft_cross_entropy(taught: Tensor, own: Tensor, temperature: float) -> Tensor:
    """- sum_y softmax(t / T)_y log softmax(s / T)_y of logits t and s [n, C], [n] (without a factor T^2)."""
    distance: Tensor = -(F.softmax(taught / temperature, -1) * F.log_softmax(own / temperature, -1)).sum(-1)
    return distance


def likeness(made: Tensor, noise: Tensor) -> Tensor:
    """exp(-mean over all pairs of mean |difference of latents| times mean (difference of noise)^2).

    Of latents [B, F] and their noise [B, Z].
    """
    apart = torch.cdist(made, made, p=1) / made.shape[1]
    return (-(apart * (noise[:, None] - noise).square().mean(2)).mean()).exp()
