import copy
import functools
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from whole_runs import slow_but

from edgesim.base.errors import Diverged, EdgesimError
from edgesim.learning.back_ends import stacked
from edgesim.learning.back_ends.layers import is_shallow_and_dense, layer_by_layer
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.probe import NotStackable, probe
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.jobs import Promise
from edgesim.learning.models import make_model

SHAPE, CLASSES = (3, 16, 16), 4


def _batch_norms():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(32, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, CLASSES),
    )  # fmt: skip


def _dense():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(768, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, CLASSES)
    )


class _Branches(nn.Module):
    """No chain: a layer used twice, a parameter of its own, one that does not train, and dropout on the way."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(768, 12)
        self.twice = nn.Linear(12, 12)
        self.fixed = nn.Parameter(torch.randn(12), requires_grad=False)
        self.scale = nn.Parameter(torch.ones(()))
        self.dropout = nn.Dropout(0.4)
        self.last = nn.Linear(12, CLASSES)

    def forward(self, images):
        hidden = torch.tanh(self.first(images.flatten(1))) + self.fixed
        hidden = self.dropout(self.twice(hidden)) + self.dropout(self.twice(-hidden))
        return self.scale * self.last(hidden)


def _twice():
    """A layer in two places of the chain, and two that share a parameter."""
    layer, one, other = nn.Linear(12, 12), nn.Linear(12, 12, bias=False), nn.Linear(12, 12)
    other.weight = one.weight
    parts = [part for part in (layer, layer, one) for part in (part, nn.Tanh())]
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 12), *parts, other, nn.Linear(12, CLASSES))


MODELS = {
    "mlp": lambda: make_model("mlp", SHAPE, CLASSES),
    "small-cnn": lambda: make_model("small-cnn", SHAPE, CLASSES),
    "batch norms": _batch_norms,
    "dense": _dense,
    "branches": _Branches,
    "twice": _twice,
}
#: Steps that agree, steps of other sizes, and fewer or more of them.
EDGES = ([0, 8, 16], [0, 8, 12], [0, 8, 16], [0, 3, 8, 10], [0, 8])


def _difference(one: Promise, other: Promise) -> float:
    return float((one.result.update - other.result.update).norm() / other.result.update.norm())


#: Of Pulling: terms alike for all clients, and each client's own, of which some have none.
PULLS = {
    "alike": {"to_start": 2.0, "decay": 0.2, "shift": 0.1},
    "own": {
        "to_start": [0.0, 3.0, 1.0, 5.0, 2.0],
        "decay": [0.0, 0.3, 0.1, 0.5, 0.2],
        "weight_decay": [0.0, 0.3, 0.1, 0.5, 0.2],
        "shift": [0.0, 0.1, 0.2, 0.0, 0.3],
        "lr": [0.02, 0.01, 0.02, 0.005, 0.02],
        "momentum": [0.5, 0.0, 0.9, 0.5, 0.5],
        "scale": [1.0, 1.1, 1.0, 1.3, 1.0],
    },
}
PRECISIONS = [(torch.float32, 1e-3), (torch.float64, 1e-9)]


def _agree(together, alone, model, bound):
    for mine, theirs in zip(together, alone, strict=True):
        assert _difference(mine, theirs) < bound
        buffers = [promise.result.update[model.trainable :] for promise in (mine, theirs)]
        torch.testing.assert_close(*buffers, rtol=bound, atol=bound)
        assert mine.result.loss == pytest.approx(theirs.result.loss, rel=bound)
        assert mine.result.loss_rms == pytest.approx(theirs.result.loss_rms, rel=bound)
        assert mine.result.accuracy == pytest.approx(theirs.result.accuracy, abs=1e-9 if bound < 1e-6 else 0.13)
        assert mine.result.update_norm == pytest.approx(theirs.result.update_norm, rel=bound)
        for found, expected in ((mine.result.up, theirs.result.up), (mine.result.keeps, theirs.result.keeps)):
            assert found.keys() == expected.keys() != set()
            for name, tensor in expected.items():
                assert found[name].shape == tensor.shape
                assert (found[name] - tensor).double().norm() <= bound * tensor.double().norm(), name


@pytest.mark.parametrize(("dtype", "bound"), PRECISIONS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("pull", PULLS)
def test_a_stack_brings_what_the_loop_does(pull, name, dtype, bound, flat, data, promises, pulling):
    model = flat(MODELS[name], dtype)
    # Augmented images would take a value of small-cnn across a kink.
    how = {"augmented": name != "small-cnn", **PULLS[pull]}
    alone, together, again = (promises(model, *EDGES, **how) for _ in range(3))
    LoopBackEnd(model, data, pulling).run(alone)
    assert StackedBackEnd(model, data, 4096, pulling).run(together) == len(EDGES)
    _agree(together, alone, model, bound)
    # The module still works by itself.
    LoopBackEnd(model, data, pulling).run(again)
    assert all(torch.equal(one.result.update, other.result.update) for one, other in zip(again, alone, strict=True))


def _cumulative():
    """A batch norm whose running statistics are plain means: they depend on how many batches it has counted."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4, momentum=None), nn.ReLU(), nn.Flatten(), nn.Linear(196, CLASSES)
    )


def test_buffers_that_count_start_anew_with_every_stack(flat, data, promises, pulling):
    model = flat(_cumulative, torch.float64)
    alone, first, second = (promises(model, *EDGES) for _ in range(3))
    LoopBackEnd(model, data, pulling).run(alone)
    back_end = StackedBackEnd(model, data, 4096, pulling)
    back_end.run(first)
    back_end.run(second)
    _agree(first, alone, model, 1e-9)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.result.update, other.result.update)


def test_a_stack_whose_buffers_come_out_otherwise_is_found_out_by_the_trial(flat):
    """Logits of training are the same whatever the running statistics become."""
    model = flat(_batch_norms)

    def forgets(tensors, keys, images):
        kept = {name: tensor if tensor.requires_grad else tensor.clone() for name, tensor in tensors.items()}
        return layer_by_layer(model)(kept, keys, images)

    with pytest.raises(NotStackable, match="other results"):
        probe(model, forgets, SHAPE)


def _layers(norm):
    """As deep as `auto` stacks."""
    hidden = [part for inputs in (768, 32) for part in (nn.Linear(inputs, 32), *norm, nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *copy.deepcopy(hidden), nn.Linear(32, CLASSES))


@pytest.mark.parametrize("norm", [[], [nn.BatchNorm1d(32)], [nn.LayerNorm(32)]])
def test_nets_that_auto_stacks_stay_within_a_thousandth_over_long_jobs_in_single_precision(
    norm, flat, data, promises, pulling
):
    """Five steps of 32, the default, and thirty of 16 with much momentum."""
    model = flat(functools.partial(_layers, norm))
    assert is_shallow_and_dense(model.module)
    jobs = list(range(0, 161, 32)), list(range(0, 481, 16))
    given = {"lr": [0.1, 0.05], "momentum": [0.5, 0.9]}
    alone, together = promises(model, *jobs, **given), promises(model, *jobs, **given)
    LoopBackEnd(model, data, pulling).run(alone)
    StackedBackEnd(model, data, 4096, pulling).run(together)
    _agree(together, alone, model, 1e-3)


#: What a stack's update may differ by from the loop's in double precision; all other nets keep to 1e-9.
DEEP = {
    # Its last batch norms see one pixel of each image: in a batch of few images they divide by a spread of almost
    # nothing, layer after layer. The most that was measured is 2e-6, after steps of 8 and 4 images.
    "torchvision:shufflenet_v2_x0_5": 1e-5,
    "fedteddi-cnn": 1e-9,
    "resnet10-gn": 1e-9,
    "resnet10-bn": 1e-9,
    "resnet10-bn-imagenet": 1e-9,
    "resnet18-gn": 1e-9,
    "resnet18-bn-imagenet": 1e-9,
    "resnet34-bn-imagenet": 1e-9,
}


@pytest.mark.parametrize("name", slow_but(["torchvision:shufflenet_v2_x0_5"], DEEP))
def test_deep_networks_stack_in_double_precision(name, flat, data, promises, pulling):
    model = flat(lambda: make_model(name, SHAPE, CLASSES), torch.float64)
    alone, together = promises(model, [0, 6, 12], [0, 6]), promises(model, [0, 6, 12], [0, 6])
    LoopBackEnd(model, data, pulling).run(alone)
    StackedBackEnd(model, data, 4096, pulling).run(together)
    _agree(together, alone, model, DEEP[name])


def test_the_order_of_the_promises_changes_no_byte(flat, data, promises, pulling):
    model = flat(MODELS["small-cnn"])
    back_end = StackedBackEnd(model, data, 4096, pulling)
    forward, backward = promises(model, *EDGES), promises(model, *EDGES)
    back_end.run(forward)
    back_end.run(backward[::-1])
    for one, other in zip(forward, backward, strict=True):
        assert torch.equal(one.result.update, other.result.update)
        assert one.result.loss == other.result.loss


@pytest.mark.parametrize("budget_mib", [4, 1])
def test_a_stack_holds_no_more_clients_than_the_memory_budget_but_always_one(
    budget_mib, flat, data, promises, monkeypatch, pulling
):
    model = flat(MODELS["small-cnn"], torch.float64)
    wide, narrow = (StackedBackEnd(model, data, budget, pulling) for budget in (4096, budget_mib))
    sizes, train = [], narrow._train
    monkeypatch.setattr(narrow, "_train", lambda stack: sizes.append(len(stack)) or train(stack))
    one, other = promises(model, *EDGES), promises(model, *EDGES)
    wide.run(one)
    narrow.run(other)
    # Weights, start, end, update, gradient and velocity, and activations with their gradients.
    fitting = (budget_mib << 20) // (6 * 8 * len(model.weights) + 2 * 8 * narrow._row_bytes)
    assert fitting == (0 if budget_mib == 1 else 2)
    assert (sum(sizes), max(sizes)) == (len(EDGES), max(1, fitting))
    assert max(map(_difference, other, one)) < 1e-12


def test_memory_that_runs_out_is_one_line_with_the_budget_to_set(flat, data, promises, monkeypatch, pulling):
    model = flat(MODELS["mlp"])
    back_end = StackedBackEnd(model, data, 512, pulling)

    def fails(*_):
        torch.empty(1 << 60)

    monkeypatch.setattr(stacked, "make_schedule", fails)
    with pytest.raises(EdgesimError, match=r"^out of memory while training 2 devices at once: set .*memory_budget_mib"):
        back_end.run(promises(model, [0, 8], [0, 8]))
    with pytest.raises(EdgesimError, match=r"^out of memory while training 1 device at once: set learning.batch_size"):
        back_end.run(promises(model, [0, 8]))


def test_memory_that_runs_out_in_the_trial_does_not_mean_that_the_module_cannot_be_stacked(flat):
    model = flat(MODELS["mlp"])
    before = model.snapshot()
    with pytest.raises(EdgesimError, match=r"^out of memory while trying the model on 2 devices at once: .*'loop'"):
        probe(model, lambda *_: torch.empty(1 << 60), SHAPE)
    assert torch.equal(model.weights, before)


def test_a_loss_that_is_not_finite_is_the_first_one_in_the_order_asked(flat, data, promises, pulling):
    model = flat(MODELS["mlp"])
    edges = [list(range(0, 41, 4))] * 4
    made = promises(model, *edges, lr=[0.01, 1e30, 0.01, 1e30])
    with pytest.raises(Diverged, match=r"device 3, round 1, step [2-9]: .*lower learning.lr"):
        StackedBackEnd(model, data, 4096, pulling).run(made[::-1])
    assert [promise.result is None for promise in made] == [False, True, False, True]
    assert all(np.isfinite(made[n].result.loss) for n in (0, 2))


class _OwnNoise(nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.layer = nn.Linear(768, CLASSES)
        self.draw = draw

    def forward(self, images):
        return self.layer(images.flatten(1)) * self.draw(images)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: nn.Sequential(nn.Flatten(), nn.AlphaDropout(0.5), nn.Linear(768, CLASSES)), "random"),
        (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(784, CLASSES)), "random"),
        (lambda: _OwnNoise(lambda images: F.dropout(images, 0.5).mean()), "random"),
        (lambda: _OwnNoise(lambda _: random.random()), "other results"),
        (lambda: _OwnNoise(lambda images: 1.0 if float(images.sum()) > 0 else 2.0), "item|data-dependent"),
    ],
)  # fmt: skip
def test_a_module_with_randomness_or_branches_of_its_own_is_not_stacked(build, words, flat, data, pulling):
    model = flat(build)
    before, state = model.snapshot(), torch.get_rng_state()
    with pytest.raises(NotStackable, match=words):
        StackedBackEnd(model, data, 4096, pulling)
    assert torch.equal(model.weights, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_trial_leaves_weights_buffers_and_counters_as_they_were(flat, data, pulling):
    model = flat(_batch_norms)
    before = copy.deepcopy(model.state())
    StackedBackEnd(model, data, 4096, pulling)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state().items())
