"""A local half for the tests of back ends: a loss of its own, of all that a step tells."""

import torch.nn.functional as F

from edgesim.learning.algorithms.local_half import LocalHalf


class Taught(LocalHalf):
    """Cross-entropy, two teachers, features near a given centre, and a mean over the samples of class 0 alone."""

    teachers = ("start", "other")
    features = True

    def loss(self, step):
        """[n]; the part of a sample of class 0 is one over their number, as a mean over them would have it."""
        taught = F.log_softmax(step.teachers["other"].logits, 1)
        soft = taught.exp() * (taught - F.log_softmax(step.own.logits, 1))
        apart = (step.own.features - step.teachers["start"].features).square().mean(1)
        near = (step.own.features - step.given["centre"]).square().mean(1)
        of_zero = (step.labels == 0) * (step.share > 0)
        part = of_zero / (step.share * of_zero).sum().clamp_min(1e-9)
        return super().loss(step) + 0.7 * soft.sum(1) - 0.2 * apart + 0.3 * part * near
