"""A local half for the tests of back ends: every term of a pull, and tensors that a device sends and keeps."""

import torch

from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Pull, Sent


class Pulling(LocalHalf):
    """Pulls as the job is given ``to_start``, ``decay`` and ``shift``; without them it is FedAvg."""

    def pull(self, given):
        """Of what the job is given."""
        return Pull(float(given.get("to_start", 0.0)), float(given.get("decay", 0.0)), given.get("shift"))

    def sent(self, trained):
        """Mixes of all that is known at the end, of several shapes and types."""
        shift = trained.given.get("shift", torch.zeros_like(trained.update))
        start = trained.given["start"][: len(shift)]
        slope = trained.update[: len(shift)] / (-trained.lr * trained.steps)
        return Sent(
            up={"slope": slope - shift, "steps": torch.tensor(trained.steps)},
            keeps={"head": trained.update[-6:].view(2, 3), "ratio": trained.momentum + start.abs().mean() / trained.lr},
        )
