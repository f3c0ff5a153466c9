"""The losses of algorithms that have one of their own, of all clients of a stack at once."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.func import vmap

from edgesim.learning import draws
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Outputs, Step
from edgesim.learning.back_ends.layers import Forward, Tensors
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job
from edgesim.learning.objective import beside_models


class StackedObjective:
    """An algorithm's own loss in the steps of a stack, whose jobs are given tensors of the same names and shapes.

    What all jobs are given as one tensor is not copied, and a teacher that they share sees the images of all at once.
    """

    def __init__(self, local: LocalHalf, model: FlatModel, forward: Forward, jobs: Sequence[Job]) -> None:
        self._local, self._model, self._forward = local, model, forward
        self._teachers: dict[str, Tensors] = {}
        for name in (name for name in local.teachers if name in jobs[0].given):
            weights, _ = _together([job.given[name] for job in jobs])
            self._teachers[name] = dict(zip(model.names, model.split(weights), strict=True))
        steps = range(max(len(job.edges) for job in jobs) - 1)
        words = [[draws.key(job.seed, step) for job in jobs] for step in steps] if local.draws else []
        self._words = [torch.tensor(words, dtype=torch.int32, device=model.device)] if words else []
        """Keys of the random numbers of the loss, [steps, S, 2]; empty unless it draws."""
        self._given = {
            name: _together([job.given[name] for job in jobs]) for name in beside_models(local, jobs[0].given)
        }

    def losses(
        self,
        tensors: Tensors,
        own: Outputs,
        keys: Tensor,
        images: Tensor,
        labels: Tensor,
        shares: Tensor,
        number: int,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Losses [n S] of outputs [n, S, ...] for images [n, S, C, H, W] of the first S clients, whose weights are
        ``tensors``.

        Labels, ``shares``, the weights in the loss, and the ``rows`` of `Step` are [n S]; ``keys`` of dropout masks
        [S, calls, 2]; ``number`` is that of the step, from 0.
        """
        clients = images.shape[1]
        given = {name: value[0] if shared else value[:clients] for name, (value, shared) in self._given.items()}
        in_dims = {name: None if shared else 0 for name, (_, shared) in self._given.items()}
        with torch.no_grad(), self._model.autocast():
            teachers = {
                name: self._forward(
                    {place: tensor[:clients] for place, tensor in tensors.items()}, keys, images, train=False
                )
                for name, tensors in self._teachers.items()
            }

        def client_losses(
            own: Mapping[str, Tensor],
            teachers: Mapping[str, Mapping[str, Tensor]],
            labels: Tensor,
            share: Tensor,
            given: Mapping[str, Tensor],
            of_head: Mapping[str, Tensor],
            words: Sequence[Tensor],
            rows: Tensor | None,
        ) -> Tensor:
            taught = {name: Outputs(**outputs) for name, outputs in teachers.items()}
            head = partial(self._model.head_logits, of_head) if of_head else None
            key = (words[0][0], words[0][1]) if words else None
            return self._local.loss(Step(Outputs(**own), taught, labels, share, given, head, key, rows))

        with warnings.catch_warnings():
            # Of operations that vmap can only run one client after another.
            warnings.filterwarnings("ignore", message="There is a performance drop")
            losses: Tensor = vmap(
                client_losses, in_dims=(1, 1, 1, 1, in_dims, 0, 0, None if rows is None else 1), out_dims=1
            )(
                self._parts(own),
                {name: self._parts(outputs) for name, outputs in teachers.items()},
                labels.view(-1, clients),
                shares.view(-1, clients),
                given,
                self._model.of_head(tensors) if self._local.features else {},
                [words[number, :clients] for words in self._words],
                None if rows is None else rows.view(-1, clients),
            )
        return losses.flatten()

    def _parts(self, outputs: Outputs) -> dict[str, Tensor]:
        return {name: tensor.to(self._model.dtype) for name, tensor in vars(outputs).items() if tensor is not None}


def _together(tensors: list[Tensor]) -> tuple[Tensor, bool]:
    """Tensors of all clients stacked, [S, ...], or the tensor that all share, [1, ...], and whether it is shared."""
    shared = len(tensors) > 1 and all(tensor.data_ptr() == tensors[0].data_ptr() for tensor in tensors)
    return (tensors[0][None] if shared else torch.stack(tensors)), shared
