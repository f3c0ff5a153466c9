import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from edgesim.learning import loss_passes
from edgesim.learning.loss_passes import gradient_deviations, mean_losses


class _Branches(nn.Module):
    """Uses one layer twice, so that no shortcut for single layers holds."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.last = nn.Linear(16, 3)

    def forward(self, images):
        hidden = torch.tanh(self.first(images.flatten(1)))
        return self.last(torch.tanh(self.first(hidden)))


def _twice():
    """One layer in two places of a chain, under two names."""
    layer = nn.Linear(16, 16)
    return nn.Sequential(nn.Flatten(), layer, nn.Tanh(), layer, nn.Linear(16, 3))


def _mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 3))


def _cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.GroupNorm(2, 4), nn.ReLU(inplace=True), nn.Dropout(0.5),
        nn.Conv2d(4, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip


def _gradient(module, data, sample):
    """Gradient of a sample's loss, the plain way."""
    images, labels = data.train(torch.tensor([sample]))
    module.eval()
    loss = F.cross_entropy(module(images), labels)
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(module.parameters()))]).double()


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
        rows = torch.stack([_gradient(flat.module, data, sample) for sample in batch])
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
