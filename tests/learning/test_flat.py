import copy

import torch
import torch.nn.functional as F
from torch import nn

from edgesim.learning.flat import FlatModel


def _with_buffers():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 25, 2)
    )


def test_parameters_come_first_then_float_buffers():
    module = _with_buffers()
    trainable = sum(parameter.numel() for parameter in module.parameters())
    mean = torch.arange(4.0)
    module[1].running_mean.copy_(mean)
    flat = FlatModel(module, torch.device("cpu"))
    assert (flat.trainable, len(flat.weights)) == (trainable, trainable + 8)
    assert flat.weights[trainable : trainable + 4].tolist() == mean.tolist()


def test_the_flat_module_computes_what_the_plain_one_does():
    plain = _with_buffers()
    flat = FlatModel(copy.deepcopy(plain), torch.device("cpu"))
    images, labels = torch.randn(6, 3, 5, 5), torch.randint(2, (6,))
    F.cross_entropy(plain(images), labels).backward()
    F.cross_entropy(flat.module(flat.inputs(images)), labels).backward()
    for mine, theirs in zip(flat.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    square_sum = sum(parameter.grad.square().sum() for parameter in plain.parameters())
    torch.testing.assert_close(flat.gradient.square().sum(), square_sum)
    torch.testing.assert_close(flat.state()["1.running_mean"], plain[1].running_mean)


def test_loading_brings_back_every_tensor_and_every_counter():
    flat = FlatModel(_with_buffers(), torch.device("cpu"))
    before, weights = flat.state(), flat.snapshot()
    flat.module(torch.randn(6, 3, 5, 5))
    with torch.no_grad():
        flat.weights.mul_(2)
    assert flat.state()["1.num_batches_tracked"] == 1
    flat.load(weights)
    for name, tensor in flat.state().items():
        assert torch.equal(tensor, before[name]), name


def test_parameters_that_do_not_train_are_no_part_of_the_vector():
    module = _with_buffers()
    module[0].requires_grad_(False)
    flat = FlatModel(module, torch.device("cpu"))
    assert flat.trainable == 8 + 4 * 25 * 2 + 2
    assert "0.weight" in flat.state()
