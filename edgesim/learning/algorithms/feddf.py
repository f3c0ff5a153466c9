"""FedDF: Lin et al., "Ensemble Distillation for Robust Model Fusion in Federated Learning", NeurIPS 2020.

The server averages as FedAvg does, and then trains the average on public images towards the mean of the models' logits.
Without the paper's stopping by a validation set: as many steps as the options say.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.base.quantities import Count, Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.records import Arrivals, State, Workbench
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.learning.torch_types import F, Parameter, Tensor, torch


class FedDfOptions(AveragingOptions):
    """Options of FedDF."""

    steps: Count = Field(200, ge=0)
    """Steps of distillation a round."""
    T: Factor = Field(1.0, gt=0)
    """Temperature by which logits are divided."""
    lr: Factor = Field(1e-3, gt=0)
    """Learning rate of Adam, which falls along half a cosine to 0 in the course of the steps."""
    batch: Count = Field(128, ge=1)
    """Public images of a step."""


class FedDfServer(ServerHalf):
    """FedAvg's server, which distils the devices' models into their average."""

    @override
    def refine(self, state: State, arrived: Arrivals, ledger: None, bench: Workbench) -> State:
        """Steps on the mean over batches of KL(softmax(mean logits of the devices / T), softmax(own logits / T)).

        A single device's model is the average itself, and teaches nothing.
        """
        from edgesim.learning.passes import ROWS

        options = self.options
        if len(arrived.ids) < 2 or not options.steps:
            return state
        parts = np.split(bench.public, range(ROWS, len(bench.public), ROWS))
        logits: Tensor | None = None
        for start, update in zip(arrived.starts, arrived.separate, strict=True):
            own = torch.cat([outputs.logits for outputs in bench.outputs(start + update, parts)])
            logits = own if logits is None else logits + own
        assert logits is not None
        taught = F.softmax(logits / len(arrived.ids) / options.T, 1)
        places = self._batches(len(bench.public), bench.round)
        on_device = [torch.from_numpy(batch).to(taught.device) for batch in places]

        def loss(own: Tensor, step: int) -> Tensor:
            return F.kl_div(F.log_softmax(own / options.T, 1), taught[on_device[step]], reduction="batchmean")

        def steps(parameters: Sequence[Parameter]) -> tuple[torch.optim.Adam, torch.optim.lr_scheduler.LRScheduler]:
            adam = torch.optim.Adam(parameters, options.lr)
            return adam, torch.optim.lr_scheduler.CosineAnnealingLR(adam, options.steps)

        batches = [bench.public[batch] for batch in places]
        return replace(state, weights=bench.fit(state.weights, batches, loss, steps, clip_norm=5.0))

    def _batches(self, count: int, round: int) -> list[Integers]:
        """Places in the public set of each step's images: pass after pass in new orders, [steps] of [batch]."""
        size = min(self.options.batch, count)
        random = self.streams.generator("distillation", round=round)
        passes = -(-self.options.steps * size // count)
        order = np.concatenate([random.permutation(count) for _ in range(passes)])
        return np.split(order[: self.options.steps * size], self.options.steps)


class FedDf(Algorithm):
    """FedAvg with ensemble distillation at the server."""

    Options = FedDfOptions
    Server = FedDfServer
    needs = frozenset({"joint merges", "public images"})
