"""Distances of the devices' class gradients from the global class gradients (FedTeddi, eq. 18)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning.flat import FlatModel
from edgesim.learning.layer_gradients import have_rules, layers_with_rules, segment_gradients, watching
from edgesim.learning.loss_passes import LESS
from edgesim.learning.passes import in_cache, rows_at_once, side_by_side, whole_segments
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts
from edgesim.learning.weighted_gradients import weighted_gradients


@dataclass(frozen=True)
class _Segments:
    """Samples of the devices' batches, sorted by class and device: a segment is one device's samples of one class."""

    samples: Integers
    """[n]."""
    weights: Floats
    """1 / the size of the batch that each sample is from, [n]."""
    sizes: list[int]
    """Samples of each segment, [K]."""
    label: Integers
    """Ascending, [K]."""
    device: Integers
    """Ascending within a class, [K]."""

    @classmethod
    def of(cls, batches: list[Integers], labels: list[Integers]) -> "_Segments":
        """Segments of the batches of all devices."""
        counts = np.array([len(batch) for batch in batches])
        device, label = np.repeat(np.arange(len(batches)), counts), np.concatenate(labels)
        order = np.lexsort((device, label))
        device, label = device[order], label[order]
        starts = np.flatnonzero(np.diff(device, prepend=-1) | np.diff(label, prepend=-1))
        sizes = np.diff(starts, append=len(order)).tolist()
        return cls(np.concatenate(batches)[order], 1 / counts[device], sizes, label[starts], device[starts])

    def part(self, which: slice, rows: slice) -> "_Segments":
        """Successive segments ``which``, whose samples are ``rows``."""
        of_segments = self.sizes[which], self.label[which], self.device[which]
        return _Segments(self.samples[rows], self.weights[rows], *of_segments)


@memory_lasts("computing gradients of classes", f"{LESS}, or selection.L_mode = 'lastlayer'")
def class_gradient_distances(
    model: FlatModel,
    data: DeviceData,
    batches: list[Integers],
    labels: list[Integers],
    alpha: Floats,
    ids: Integers,
    class_count: int,
    part: Literal["all", "last_linear"],
    memory_budget_mib: int,
    cores: int = 1,
) -> Floats:
    """|| g_n^(c) - g^(c) || of the devices in ``ids``, [len(ids), C] (FedTeddi, eq. 18).

    ``batches`` and ``labels`` are those of all N devices, ``alpha`` their weights, [N]. g_n^(c) is the part
    of class c in the mean gradient of device n's batch at the loaded weights, g^(c) the mean over devices
    weighted by alpha. In memory are the vectors g_n^(c) of one class, or, where devices share passes, of as many
    classes as fit into the budget.
    """
    model.module.eval()
    segments = _Segments.of(batches, labels)
    first = model.inputs(data.train(data.index(segments.samples[:1]))[0])
    layers, parameters = layers_with_rules(model, first), model.parameters()
    if part == "last_linear":
        last = model.head
        if last is None:
            raise EdgesimError("selection.L_mode: 'lastlayer' needs a model with an nn.Linear that trains; use 'eq18'")
        layers = [last] if have_rules(model, [last], first) else None
        parameters = [parameter for parameter in last.parameters() if parameter.requires_grad]
    # Convolutions of many images are no faster on a CPU than those of few.
    if in_cache(model):
        layers = None
    at_once = (memory_budget_mib << 20) // sum(parameter.nbytes for parameter in parameters) if layers else 1
    rows = rows_at_once(model, first, memory_budget_mib)
    distances = np.zeros((len(ids), class_count))
    row_of = np.full(len(batches), -1)
    row_of[ids] = np.arange(len(ids))
    samples_before = np.cumsum([0, *segments.sizes])
    of_class = np.unique(segments.label, return_counts=True)[1].tolist()
    for classes, which in whole_segments(of_class, at_once):
        some = segments.part(which, slice(samples_before[which.start], samples_before[which.stop]))
        gradients = _gradients(model, data, some, parameters, layers, rows, cores)
        weights = torch.from_numpy(alpha[some.device]).to(gradients)
        # The gradients of a class, which lie together, become differences in their place.
        overall = []
        for own, own_weights in zip(
            *(torch.split(rows, of_class[classes]) for rows in (gradients, weights)), strict=True
        ):
            overall.append(own_weights @ own)
            own.sub_(overall[-1])
        labels_here = np.unique(some.label)
        distances[:, labels_here] = torch.linalg.vector_norm(torch.stack(overall), dim=1).cpu().numpy()
        asked = row_of[some.device] >= 0
        apart = torch.linalg.vector_norm(gradients, dim=1).cpu().numpy()
        distances[row_of[some.device[asked]], some.label[asked]] = apart[asked]
    return distances


def _gradients(
    model: FlatModel,
    data: DeviceData,
    segments: _Segments,
    parameters: Sequence[nn.Parameter],
    layers: Sequence[nn.Module] | None,
    at_once: int,
    cores: int,
) -> Tensor:
    """Gradients of the segments, [K, parameters]: by so many rows at once where layers have rules, else one by one."""
    index, weights = data.index(segments.samples), torch.from_numpy(segments.weights).to(model.weights)
    gradients = weights.new_empty(len(segments.sizes), sum(parameter.numel() for parameter in parameters))

    def work(part: tuple[slice, slice]) -> None:
        which, rows = part
        images, labels = data.train(index[rows])
        images = model.inputs(images)
        if layers:
            gradients[which] = segment_gradients(model, uses, images, labels, weights[rows], segments.sizes[which])
            return
        losses = F.cross_entropy(model.module(images), labels, reduction="none")
        parts = weighted_gradients(losses, weights[rows], parameters, allow_unused=True, materialize_grads=True)
        # In some versions of PyTorch the zeros of a parameter that is not used require a gradient.
        gradients[which] = torch.cat([part.detach().reshape(-1) for part in parts])

    with watching(layers or ()) as uses:
        side_by_side(model, cores, work, list(whole_segments(segments.sizes, at_once if layers else 1)))
    return gradients
