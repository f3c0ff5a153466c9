"""What KPFL's server computes: the pass of a pool's models over made images, its gradient, and a whole round.

Ratios to a plain loop over modules, in the same run. ``pytest tests/benchmarks/test_kpfl.py -s`` prints them.
"""

import time

import pytest
import torch
from sizes import least_cpu_s, size
from torch import nn

from edgesim.learning.algorithms.data_free import teaching
from edgesim.learning.flat import FlatModel
from edgesim.learning.model_pool import frozen, pass_bytes
from edgesim.learning.models import new_model

CASES = {
    "digits mlp": ("mlp", (1, 8, 8), *size((50, 20), (2, 0))),
    "small-cnn": ("small-cnn", (3, 32, 32), *size((10, 2), (2, 0))),
    "ResNet-10": ("resnet10-bn", (3, 32, 32), *size((4, 1), (2, 0))),
}
"""Model, image, models in the pool, repetitions; 50 ResNets take 50 / 4 of the time of 4."""
BATCH = size(128, 4)


def plain_loop(modules, images, labels, weights):
    """Modules one after another, as a plain program has them."""
    shown = images.clone().requires_grad_()
    gradient = torch.zeros_like(images)
    for module, share in zip(modules, weights, strict=True):
        losses = nn.functional.cross_entropy(module(shown), labels, reduction="none")
        gradient += torch.autograd.grad((share * losses).mean(), shown)[0]
    return gradient


def whole(pool, by_class, images, labels):
    shown = images.clone().requires_grad_()
    return torch.autograd.grad(teaching(pool, by_class, shown, labels), shown)[0]


@pytest.mark.parametrize("name", CASES)
def test_a_pools_pass_over_made_images_beside_a_loop_over_modules(name):
    """Milliseconds of a pass and its gradient, the least of several in turns, and what a pass keeps in memory."""
    kind, shape, count, repetitions = CASES[name]
    modules = [new_model(kind, shape, 10, seed).eval() for seed in range(count)]
    model = FlatModel(new_model(kind, shape, 10, 0), torch.device("cpu"))
    models = [FlatModel(new_model(kind, shape, 10, seed), torch.device("cpu")).snapshot() for seed in range(count)]
    images, labels = torch.rand(BATCH, *shape), torch.randint(10, (BATCH,))
    weights = torch.full((count,), 1 / count)
    by_class = weights[:, None].expand(-1, 10)
    pool = frozen(model, models, shape, 1 << 30)
    ways = {
        "loop over modules": lambda: plain_loop(modules, images, labels, weights),
        "edgesim": lambda: whole(pool, by_class, model.inputs(images), labels),
    }
    loop, ours = (play() for play in ways.values())
    assert torch.allclose(ours, loop, atol=1e-5)
    least = least_cpu_s(ways, repetitions + 1, clock=time.perf_counter)
    loop_ms, ours_ms = (1e3 * seconds for seconds in least.values())
    mib = pass_bytes(model, shape, BATCH, count)[1] / 2**20
    print(f"\n{count} x {name}: {loop_ms:.2f} and {ours_ms:.2f} ms, {loop_ms / ours_ms:.2f}; {mib:.3g} MiB of a pass")
