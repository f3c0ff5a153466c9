"""Losses and the spread of gradients for schedulers, each by a pass of its own (FedTeddi, P3)."""

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.evaluation import predictions
from edgesim.learning.flat import FlatModel
from edgesim.learning.layer_gradients import layers_with_rules, segment_squares, watching
from edgesim.learning.passes import rows_at_once, side_by_side, whole_segments
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts

#: Per-sample gradients held at once, in numbers: 32 MB.
_NUMBERS_AT_ONCE = 8 << 20
#: Remedy in messages about a batch that is too large for memory.
LESS = "set learning.batch_size lower"


def mean_losses(model: FlatModel, data: DeviceData, clients: list[Integers], cores: int = 1) -> Floats:
    """Mean loss of the loaded weights on each device's data set, [n]; shared samples are run once."""
    distinct, where = np.unique(np.concatenate(clients), return_inverse=True)
    losses = predictions(model, data, distinct, False, cores)[0][where]
    starts = np.cumsum([0] + [len(client) for client in clients[:-1]])
    return np.asarray(np.add.reduceat(losses, starts) / [len(client) for client in clients])


def loss_drops(
    model: FlatModel,
    data: DeviceData,
    starts: Sequence[Tensor],
    updates: Sequence[Tensor],
    clients: Sequence[Integers],
    cores: int = 1,
) -> Floats:
    """Mean loss on each device's data set at its start weights, less that after its update, [n].

    ``starts`` and ``updates`` are [n] of [P]; devices with the same start share a pass.
    """
    drops = np.empty(len(clients))
    together: dict[int, list[int]] = {}
    for place, start in enumerate(starts):
        together.setdefault(id(start), []).append(place)
    for places in together.values():
        model.load(starts[places[0]])
        drops[places] = mean_losses(model, data, [clients[place] for place in places], cores)
    for place, (start, update, client) in enumerate(zip(starts, updates, clients, strict=True)):
        model.load(start + update)
        drops[place] -= mean_losses(model, data, [client], cores)[0]
    return drops


@memory_lasts("computing the spread of gradients", LESS)
def gradient_deviations(
    model: FlatModel, data: DeviceData, batches: list[Integers], memory_budget_mib: int, cores: int = 1
) -> Floats:
    """s_n = sqrt(sum_i ||g_i - gbar||^2 / (b - 1)) over each batch's samples, [n].

    Gradients of the trainable parameters at the loaded weights, dropout off (FedTeddi, sec. IV). As many batches share
    a pass as fit into the budget where `layer_gradients` has a rule for every layer, else by per-sample gradients.
    """
    model.module.eval()
    index = data.index(np.concatenate(batches))
    first = model.inputs(data.train(index[:1])[0])
    layers = layers_with_rules(model, first)
    if layers is None:
        return _deviations_of_gradients(model, data, batches)
    sizes = [len(batch) for batch in batches]

    def spreads(part: tuple[slice, slice]) -> Tensor:
        which, rows = part
        images, labels = data.train(index[rows])
        squares, total = segment_squares(model, uses, model.inputs(images), labels, sizes[which])
        return squares - total / torch.tensor(sizes[which]).to(total)

    parts = list(whole_segments(sizes, rows_at_once(model, first, memory_budget_mib)))
    with watching(layers) as uses:
        spread = torch.cat(side_by_side(model, cores, spreads, parts)).clamp(min=0).cpu().numpy()
    return np.asarray(np.sqrt(spread / (np.array(sizes) - 1)))


def _deviations_of_gradients(model: FlatModel, data: DeviceData, batches: list[Integers]) -> Floats:
    """`gradient_deviations` by per-sample gradients, for any module."""
    names = model.names[: len(model.parameters())]
    parameters = dict(zip(names, (parameter.detach() for parameter in model.parameters()), strict=True))

    def loss(values: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(model.call(values, image[None]), label[None])

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))
    deviations: list[float] = []
    chunk = max(1, _NUMBERS_AT_ONCE // model.trainable)
    # One chunk may span several small batches, one batch several chunks: only running sums are kept.
    index = data.index(np.concatenate(batches))
    ends = np.cumsum([len(batch) for batch in batches]).tolist()
    total = torch.zeros(model.trainable, device=data.device, dtype=model.dtype)
    squares, begin = 0.0, 0
    for first in range(0, len(index), chunk):
        images, labels = data.train(index[first : first + chunk])
        gradients = per_sample(parameters, model.inputs(images), labels)
        parts = [gradients[name].flatten(1) for name in names]
        norms = sum(torch.linalg.vector_norm(rows, dim=1).double().square() for rows in parts).tolist()
        row = 0
        while row < len(norms):
            stop = min(len(norms), ends[len(deviations)] - first)
            total += torch.cat([rows[row:stop].sum(0) for rows in parts])
            squares += math.fsum(norms[row:stop])
            row = stop
            if first + row == ends[len(deviations)]:
                count = first + row - begin
                spread = squares - float(torch.linalg.vector_norm(total)) ** 2 / count
                deviations.append(math.sqrt(max(spread, 0.0) / (count - 1)))
                total.zero_()
                squares, begin = 0.0, first + row
    return np.array(deviations)
