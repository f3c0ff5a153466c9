"""Distances of class gradients, spreads of the gradients of samples, and mean losses, beside plain passes."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from edgesim.base.errors import EdgesimError
from edgesim.learning import class_gradients, loss_passes
from edgesim.learning.class_gradients import class_gradient_distances
from edgesim.learning.loss_passes import gradient_deviations, mean_losses


class _Branches(nn.Module):
    """Uses one layer twice, so that no rule for single layers holds of it; the last one is used once."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.last = nn.Linear(16, 4)

    def forward(self, images):
        hidden = torch.tanh(self.first(images.flatten(1)))
        return self.last(torch.tanh(self.first(hidden)))


class _Aside(nn.Module):
    """Works with layers that the logits do not hang on; ``alone`` it has no others."""

    def __init__(self, alone=False):
        super().__init__()
        self.first = nn.Linear(16, 5)
        self.aside = nn.Linear(5, 2)
        self.unused = nn.Identity() if alone else nn.Linear(3, 3)
        self.last = nn.Linear(5, 4)

    def forward(self, images):
        hidden = torch.relu(self.first(images.flatten(1)))
        self.aside(hidden)
        return self.last(hidden)


class _Tied(nn.Module):
    """The last layer is used twice, under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 4)
        self.middle = nn.Linear(4, 4, bias=False)
        self.last = nn.Linear(4, 4)
        self.last.weight = self.middle.weight

    def forward(self, images):
        return self.last(torch.relu(self.middle(torch.tanh(self.first(images.flatten(1))))))


def _twice():
    """One layer in two places of a chain, under two names."""
    layer = nn.Linear(16, 16)
    return nn.Sequential(nn.Flatten(), layer, nn.Tanh(), layer, nn.Linear(16, 4))


def _mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 4))


def _cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.GroupNorm(2, 4), nn.ReLU(inplace=True), nn.Dropout(0.5),
        nn.Conv2d(4, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4, 4),
    )  # fmt: skip


def _gradient(module, data, samples, weight=1.0, part=None):
    """Gradient of weight times the summed loss, the plain way."""
    images, labels = data.train(torch.from_numpy(np.asarray(samples)))
    module.eval()
    loss = weight * F.cross_entropy(module(images), labels, reduction="sum")
    parameters = list((part or module).parameters())
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return torch.cat([g.detach().reshape(-1) for g in gradients]).double()


def _distances_by_hand(flat, data, dataset, batches, alpha, part):
    """g_n^(c) and g^(c) as dense vectors, from the definition below eq. 18."""
    classes = dataset.class_count
    size = sum(p.numel() for p in (part or flat.module).parameters())
    vectors = torch.zeros(len(batches), classes, size, dtype=torch.float64)
    for n, batch in enumerate(batches):
        for label in range(classes):
            samples = batch[dataset.train_labels[batch] == label]
            if len(samples):
                vectors[n, label] = _gradient(flat.module, data, samples, 1 / len(batch), part)
    overall = torch.einsum("n,ncp->cp", torch.from_numpy(alpha), vectors)
    return (vectors - overall).norm(dim=2).numpy()


@pytest.mark.parametrize("build", [_mlp, _cnn, _Branches, _Aside, lambda: _Aside(alone=True), _Tied])
@pytest.mark.parametrize("part", ["all", "last_linear"])
@pytest.mark.parametrize("budget_mib", [0, 1, 4096])
def test_class_gradient_distances_equal_those_of_dense_vectors(build, part, budget_mib, make_dataset, make_flat):
    torch.manual_seed(1)
    dataset = make_dataset(np.arange(60) % 3, class_count=4)
    flat, data = make_flat(build(), dataset)
    # Device 0 lacks class 2, device 2 holds one class only; nobody holds class 3.
    batches = [np.array([0, 1, 3, 4, 6]), np.arange(10, 19), np.array([2, 5, 8])]
    labels = [dataset.train_labels[batch] for batch in batches]
    alpha = np.array([0.2, 0.5, 0.3])
    ids = np.array([2, 0])
    found = class_gradient_distances(flat, data, batches, labels, alpha, ids, 4, part, budget_mib)
    layer = list(flat.module.modules())[-1] if part == "last_linear" else None
    expected = _distances_by_hand(flat, data, dataset, batches, alpha, layer)[ids]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert found[:, 3].tolist() == [0.0, 0.0]


def test_devices_that_share_a_pass_have_the_distances_that_they_have_one_by_one(make_dataset, make_flat, monkeypatch):
    """As on a GPU: convolutional nets on a CPU do without."""
    torch.manual_seed(2)
    dataset = make_dataset(np.arange(90) % 4)
    flat, data = make_flat(_cnn(), dataset)
    batches = [np.arange(0, 32), np.arange(20, 21), np.arange(32, 90)]
    labels = [dataset.train_labels[batch] for batch in batches]

    def distances():
        return class_gradient_distances(flat, data, batches, labels, np.ones(3) / 3, np.arange(3), 4, "all", 1)

    alone = distances()
    monkeypatch.setattr(class_gradients, "in_cache", lambda _: False)
    np.testing.assert_allclose(distances(), alone, rtol=1e-5)


def test_the_last_layers_gradient_needs_a_linear_layer(make_dataset, make_flat):
    module = nn.Sequential(nn.Conv2d(1, 3, 4), nn.Flatten())
    flat, data = make_flat(module, make_dataset([0, 1, 2]))
    with pytest.raises(EdgesimError, match=r"needs a model with an nn\.Linear"):
        class_gradient_distances(
            flat, data, [np.arange(3)], [np.arange(3)], np.ones(1), np.array([0]), 3, "last_linear", 1
        )


@pytest.mark.parametrize("build", [_mlp, _cnn, _Branches, _twice])
@pytest.mark.parametrize(("at_once", "budget_mib"), [(1, 0), (500, 1), (8 << 20, 4096)])
def test_gradient_deviations_are_those_of_one_backward_pass_per_sample(
    build, at_once, budget_mib, make_dataset, make_flat, monkeypatch
):
    monkeypatch.setattr(loss_passes, "_NUMBERS_AT_ONCE", at_once)
    torch.manual_seed(0)
    flat, data = make_flat(build(), make_dataset(np.arange(40) % 3))
    batches = [np.arange(0, 8), np.array([3, 9]), np.arange(10, 33)]
    expected = []
    for batch in batches:
        rows = torch.stack([_gradient(flat.module, data, [sample]) for sample in batch])
        expected.append(math.sqrt((rows - rows.mean(0)).square().sum() / (len(batch) - 1)))
    np.testing.assert_allclose(gradient_deviations(flat, data, batches, budget_mib), expected, rtol=2e-5)
    # The module is left as it was.
    flat.module(data.train(torch.arange(2))[0]).sum().backward()


def test_mean_losses_are_those_of_each_devices_own_set_though_sets_overlap(make_dataset, make_flat):
    torch.manual_seed(2)
    flat, data = make_flat(_mlp(), make_dataset(np.arange(200) % 3))
    clients = [np.arange(0, 150), np.arange(100, 200), np.array([7])]
    expected = []
    for client in clients:
        images, labels = data.train(torch.from_numpy(client))
        expected.append(F.cross_entropy(flat.module(images), labels).item())
    np.testing.assert_allclose(mean_losses(flat, data, clients), expected, rtol=1e-5)
