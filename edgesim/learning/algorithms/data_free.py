"""Data-free distillation of a pool of models into one by images that a generator makes of each class (KPFL).

Losses of eqs. 5 to 8 of KPFL's paper, in the readings that `edgesim.learning.algorithms.kpfl` names.
"""

from collections.abc import Callable, Sequence

from edgesim.learning.algorithms.distillation import likeness
from edgesim.learning.algorithms.records import Frozen, Workbench
from edgesim.learning.torch_types import SGD, F, Parameter, Tensor, torch

CLIP_NORM = 10.0
_LR, _WEIGHT_DECAY = 0.01, 1e-5


def teaching(pool: Frozen, by_class: Tensor, images: Tensor, labels: Tensor) -> Tensor:
    """The mean over `inputs` [n, C, H, W] of sum_i W_i^y CE(theta_i(image), y) (eq. 5), with a gradient to them.

    ``by_class`` is W^y, [S, C]. Models are frozen; the gradient is taken part by part of them, so that the activations
    of one part alone are in memory at a time.
    """
    seen = images.detach().requires_grad_()
    total, gradient = images.new_zeros(()), torch.zeros_like(seen)
    for part, outputs in pool(seen):
        # Over a last dimension of ten a softmax takes twenty times as long.
        log = outputs.logits.transpose(1, 2).contiguous().log_softmax(1)
        own = log.gather(1, labels.expand(len(log), 1, -1))[:, 0]
        loss = -(own * by_class[part][:, labels]).sum() / len(labels)
        gradient += torch.autograd.grad(loss, seen)[0]
        total += loss.detach()
    # A number whose gradient at the images is known already.
    known = (images * gradient).sum()
    return total + known - known.detach()


def contrast(features: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Mean of -log of the share of its own class in the sum of e^(cos(f, cen(y')) / tau) over classes (eq. 6).

    Features are [n, F]. cen(y), the mean of the features of class y in the batch, has no gradient; classes without an
    image in the batch take no part.
    """
    present, own = torch.unique(labels, return_inverse=True)
    members = F.one_hot(own, len(present)).T.to(features)
    centres = members @ features.detach() / members.sum(1, keepdim=True)
    return F.cross_entropy(F.normalize(features) @ F.normalize(centres).T / temperature, own)


def ensemble(pool: Frozen, by_class: Tensor, images: Tensor, labels: Tensor) -> Tensor:
    """y_ens, [n, classes]: logits that all models make of `inputs`, weighted by W^y of the images' classes (eq. 7)."""
    with torch.no_grad():
        parts = [(by_class[part][:, labels, None] * outputs.logits).sum(0) for part, outputs in pool(images)]
    return torch.stack(parts).sum(0)


def distilled(bench: Workbench, weights: Tensor, images: Sequence[Tensor], taught: Sequence[Tensor]) -> Tensor:
    """The model, [P], after a step of SGD on each batch of `inputs` towards the logits taught for them (eq. 8)."""

    def loss(own: Tensor, step: int) -> Tensor:
        return F.kl_div(F.log_softmax(own, 1), F.softmax(taught[step], 1), reduction="batchmean")

    def steps(parameters: Sequence[Parameter]) -> tuple[SGD, None]:
        return torch.optim.SGD(parameters, _LR, weight_decay=_WEIGHT_DECAY), None

    return bench.fit(weights, images, loss, steps, CLIP_NORM)


def objective(
    inputs: Callable[[Tensor], Tensor],
    pool: Frozen,
    by_class: Tensor,
    mean: Frozen,
    temperature: float,
    strengths: tuple[float, float, float],
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Loss on which a generator is trained, a function of images [n, C, H, W], their noise [n, Z] and labels [n].

    ``strengths`` of `teaching` by the pool's models, of `contrast` in the features of their ``mean``, and of the
    likeness of images, as FedGen has it (3.12). ``inputs`` makes of images what models see.
    """

    def loss(images: Tensor, noise: Tensor, labels: Tensor) -> Tensor:
        shown = inputs(images)
        by_pool = teaching(pool, by_class, shown, labels)
        ((_, outputs),) = mean(shown)
        apart = contrast(outputs.features[0], labels, temperature)
        terms = by_pool, apart, likeness(images.flatten(1), noise)
        return sum((strength * term for strength, term in zip(strengths, terms, strict=True)), images.new_zeros(()))

    return loss
