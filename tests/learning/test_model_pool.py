"""Many frozen models asked about the same images, beside each module by itself, and the memory that this takes."""

import copy

import pytest
import torch
from torch import nn

from edgesim.learning.algorithms.data_free import teaching
from edgesim.learning.flat import FlatModel
from edgesim.learning.model_pool import frozen, pass_bytes
from edgesim.learning.models import make_model

SHAPE = (2, 4, 4)
DENSE = nn.Linear(32, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Dropout(0.5), nn.Linear(12, 3)
CONVOLUTIONAL = (
    *(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5)),
    *(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 3)),
)
NETS = {"dense": nn.Sequential(nn.Flatten(), *DENSE), "convolutional": nn.Sequential(*CONVOLUTIONAL)}
ROOMY = 1 << 30


def five(kind):
    """A model, five modules like it with weights and running moments of their own, and their vectors."""
    modules = []
    for seed in range(5):
        torch.manual_seed(seed)
        module = copy.deepcopy(NETS[kind]).double()
        for layer in module:
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                layer.running_mean.normal_()
                layer.running_var.uniform_(0.5, 2.0)
        modules.append(module.eval())
    model = FlatModel(copy.deepcopy(NETS[kind]).double(), torch.device("cpu"))
    vectors = [FlatModel(copy.deepcopy(module), torch.device("cpu")).snapshot() for module in modules]
    return model, modules, vectors


def answers(pool, model, images):
    """Logits [S, n, C], features [S, n, F], the gradient at the images of a sum of both, and the sizes of parts."""
    logits, features, gradient, sizes = [], [], 0, []
    for part, outputs in pool(model.inputs(images)):
        assert part.start == sum(sizes)
        sizes.append(part.stop - part.start)
        strength = torch.arange(part.start + 1.0, part.stop + 1.0, dtype=torch.float64)[:, None, None]
        loss = (strength * outputs.logits.sin()).sum() + (strength * outputs.features.square()).sum()
        gradient = gradient + torch.autograd.grad(loss, images)[0]
        logits.append(outputs.logits.detach())
        features.append(outputs.features.detach())
    return torch.cat(logits), torch.cat(features), gradient, sizes


@pytest.mark.parametrize(
    ("kind", "room", "parts"),
    [
        ("dense", ROOMY, [5]),
        ("dense", "two", [2, 2, 1]),
        ("dense", "one", [1] * 5),
        ("dense", 0, [1] * 5),
        ("convolutional", ROOMY, [1] * 5),
        ("convolutional", 0, [1] * 5),
    ],
)
def test_frozen_models_answer_as_each_module_does_in_evaluation_mode_however_many_have_room(kind, room, parts):
    """With dropout and batch norm: answers twice equal, and neither moments nor weights have changed."""
    model, modules, vectors = five(kind)
    before = [vector.clone() for vector in vectors]
    torch.manual_seed(9)
    images = torch.rand(6, *SHAPE, dtype=torch.float64, requires_grad=True)
    if isinstance(room, str):
        room = {"one": 1, "two": 2}[room] * pass_bytes(model, SHAPE, len(images), 5)[0]
    pool = frozen(model, vectors, SHAPE, room)
    logits, features, gradient, sizes = answers(pool, model, images)
    assert sizes == parts
    again = answers(pool, model, images)
    assert all(torch.equal(one, other) for one, other in zip((logits, features, gradient), again[:3], strict=True))
    assert all(torch.equal(one, other) for one, other in zip(vectors, before, strict=True))
    expected = torch.zeros_like(images)
    for place, module in enumerate(modules):
        own = module[:-1](images)
        scores = module[-1](own)
        torch.testing.assert_close(logits[place], scores, rtol=0, atol=1e-12)
        torch.testing.assert_close(features[place], own, rtol=0, atol=1e-12)
        loss = (place + 1) * (scores.sin().sum() + own.square().sum())
        expected += torch.autograd.grad(loss, images)[0]
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-11)


def test_the_models_weights_train_again_once_frozen_ones_were_asked():
    model, _, vectors = five("convolutional")
    for _ in frozen(model, vectors, SHAPE, ROOMY)(torch.rand(2, *SHAPE, dtype=torch.float64)):
        pass
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("kind", ["mlp", "small-cnn"])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.05])
def test_a_pass_and_its_gradient_take_no_more_than_their_room(kind, share, peak_bytes):
    """Of 20 models, beside these: all at once, some of them, or one, which may need more than there is."""
    shape, images, count = (1, 8, 8), torch.rand(64, 1, 8, 8), 20
    model = FlatModel(make_model(kind, shape, 10), torch.device("cpu"))
    models, labels = [torch.randn_like(model.weights) for _ in range(count)], torch.randint(10, (64,))
    least, most = pass_bytes(model, shape, len(images), count)
    assert most == (count * least if kind == "mlp" else least)
    room = max(least, int(share * most))
    by_class = torch.full((count, 10), 1 / count)
    taken = peak_bytes(lambda: teaching(frozen(model, models, shape, room), by_class, images, labels))
    # The images' own gradient is no part of it, nor that of the models that have been asked.
    assert room / 5 < taken < room + 2 * images.nbytes
