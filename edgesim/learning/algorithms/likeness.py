"""Likeness of what a generator makes, which its objective keeps small."""

from edgesim.learning.torch_types import Tensor


def likeness(made: Tensor, noise: Tensor) -> Tensor:
    """exp(-mean over all pairs of mean |difference of latents| times mean (difference of noise)^2).

    Of latents [B, F] and their noise [B, Z].
    """
    import torch

    apart = torch.cdist(made, made, p=1) / made.shape[1]
    return (-(apart * (noise[:, None] - noise).square().mean(2)).mean()).exp()
