"""Statistics that schedulers ask of learning, each a pass of its own (FedTeddi, eq. 18 and P3)."""

import math
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from edgesim.errors import EdgesimError
from edgesim.learning.evaluation import predictions
from edgesim.learning.flat import FlatModel
from edgesim.learning.numerics import memory_lasts
from edgesim.learning.sample_norms import squared_gradient_norms
from edgesim.learning.tensors import DeviceData
from edgesim.selection.view import Floats, Integers

#: Per-sample gradients held at once, in numbers: 32 MB.
_NUMBERS_AT_ONCE = 8 << 20
_LESS = "set learning.batch_size lower"


def mean_losses(model: FlatModel, data: DeviceData, clients: list[Integers], cores: int = 1) -> Floats:
    """Mean loss of the loaded weights on each device's data set, [n]; shared samples are run once."""
    distinct, where = np.unique(np.concatenate(clients), return_inverse=True)
    losses = predictions(model, data, distinct, False, cores)[0][where]
    starts = np.cumsum([0] + [len(client) for client in clients[:-1]])
    return np.asarray(np.add.reduceat(losses, starts) / [len(client) for client in clients])


@memory_lasts("computing the spread of gradients", _LESS)
def gradient_deviations(model: FlatModel, data: DeviceData, batches: list[Integers]) -> Floats:
    """s_n = sqrt(sum_i ||g_i - gbar||^2 / (b - 1)) over each batch's samples, [n].

    Gradients of the trainable parameters at the loaded weights, dropout off (FedTeddi, sec. IV). One batched pass
    per device where every layer has a rule for its per-sample norms, else per-sample gradients.
    """
    model.module.eval()
    deviations = []
    for batch in batches:
        images, labels = data.train(data.index(batch))
        found = squared_gradient_norms(model, model.inputs(images), labels)
        if found is None:
            return _deviations_of_gradients(model, data, batches)
        squares, total = found
        spread = float(squares.sum()) - float(total @ total) / len(batch)
        deviations.append(math.sqrt(max(spread, 0.0) / (len(batch) - 1)))
    return np.array(deviations)


def _deviations_of_gradients(model: FlatModel, data: DeviceData, batches: list[Integers]) -> Floats:
    """`gradient_deviations` by per-sample gradients, for any module."""
    module = model.module.eval()
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    parameters = dict(zip(names, (parameter.detach() for parameter in model.parameters()), strict=True))

    def loss(values: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        logits: Tensor = functional_call(module, values, (image[None],))
        return F.cross_entropy(logits, label[None])

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))
    deviations: list[float] = []
    chunk = max(1, _NUMBERS_AT_ONCE // model.trainable)
    # One chunk may span several small batches, one batch several chunks: only running sums are kept.
    index = data.index(np.concatenate(batches))
    ends = np.cumsum([len(batch) for batch in batches]).tolist()
    total = torch.zeros(model.trainable, device=data.device)
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


@memory_lasts("computing gradients of classes", f"{_LESS}, or selection.L_mode = 'lastlayer'")
def class_gradient_distances(
    model: FlatModel,
    data: DeviceData,
    batches: list[Integers],
    labels: list[Integers],
    alpha: Floats,
    ids: Integers,
    class_count: int,
    part: Literal["all", "last_linear"],
) -> Floats:
    """|| g_n^(c) - g^(c) || of the devices in ``ids``, [len(ids), C] (FedTeddi, eq. 18).

    ``batches`` and ``labels`` are those of all N devices, ``alpha`` their weights, [N]. g_n^(c) is the part
    of class c in the mean gradient of device n's batch at the loaded weights, g^(c) the mean over devices
    weighted by alpha. One class is treated after another: in memory are g^(c) and the vectors of the asked
    devices that hold class c.
    """
    model.module.eval()
    parameters = _last_linear(model) if part == "last_linear" else model.parameters()
    distances = np.zeros((len(ids), class_count))
    asked = {int(device): row for row, device in enumerate(ids)}
    for label in np.unique(np.concatenate(labels)).tolist():
        overall: Tensor = torch.zeros(sum(p.numel() for p in parameters), device=data.device)
        own: dict[int, Tensor] = {}
        for device, (batch, batch_labels) in enumerate(zip(batches, labels, strict=True)):
            samples = batch[batch_labels == label]
            if len(samples) == 0:
                continue
            images, targets = data.train(data.index(samples))
            loss = F.cross_entropy(model.module(model.inputs(images)), targets, reduction="sum") / len(batch)
            gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, parameters)])
            overall.add_(gradient, alpha=float(alpha[device]))
            if device in asked:
                own[asked[device]] = gradient
        distances[:, label] = float(torch.linalg.vector_norm(overall))
        for row, gradient in own.items():
            distances[row, label] = float(torch.linalg.vector_norm(gradient - overall))
    return distances


def _last_linear(model: FlatModel) -> list[nn.Parameter]:
    layers = [layer for layer in model.module.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise EdgesimError("selection.L_mode: 'lastlayer' needs a model with an nn.Linear; use 'eq18'")
    return [parameter for parameter in layers[-1].parameters() if parameter.requires_grad]
