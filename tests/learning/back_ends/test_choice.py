import copy
import functools

import pytest
import torch
from torch import nn
from torchvision.models import shufflenet_v2_x0_5

from edgesim.learning import back_ends
from edgesim.learning.back_ends import make_back_end
from edgesim.learning.back_ends.layers import is_shallow_and_dense
from edgesim.learning.back_ends.workers import NoSharedMemory
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import MODELS as KNOWN
from edgesim.learning.models import make_model

SHAPE, CLASSES = (3, 16, 16), 4
CPU = torch.device("cpu")


def _layers(dense, *between):
    """A chain of so many dense layers with what ``between`` makes after each but the last; few parameters."""
    sizes = [768, *[16] * (dense - 1)]
    parts = [part for size in sizes[:-1] for part in (nn.Linear(size, 16), *(make() for make in between), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *parts, nn.Linear(sizes[-1], CLASSES))


def _norm():
    return nn.BatchNorm1d(16)


def _own_noise():
    return nn.Sequential(nn.Flatten(), nn.AlphaDropout(0.5), nn.Linear(768, CLASSES))


def _wide():
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 100), nn.ReLU(), nn.Linear(100, CLASSES))


MODELS = {
    "small": functools.partial(_layers, 2),
    "three dense layers with batch norms": functools.partial(_layers, 3, _norm),
    "four dense layers": functools.partial(_layers, 4),
    "four norms": functools.partial(_layers, 3, _norm, _norm),
    "normed": functools.partial(_layers, 16, _norm),
    "one layer often": lambda: nn.Sequential(nn.Flatten(), nn.Linear(768, 8), *[nn.Linear(8, 8)] * 3, nn.Linear(8, 4)),
    "wide": _wide,
    "convolutions": functools.partial(make_model, "small-cnn", SHAPE, CLASSES),
    "own noise": _own_noise,
}


@pytest.fixture
def choose(make_config, data, averaging):
    def choose(model, cores=2, **learning):
        build = MODELS[model]
        config = make_config(learning=learning).learning
        back_end, notice = make_back_end(config, FlatModel(build(), CPU), data, build, cores, averaging)
        back_end.close()
        return back_end.name, notice

    return choose


@pytest.fixture
def choose_off(make_config, data, averaging, monkeypatch):
    """What is chosen for a model whose data are said to be on a GPU."""

    class Stand:
        name = "stacked"

    monkeypatch.setattr(back_ends, "StackedBackEnd", lambda *_: Stand())
    away = copy.copy(data)
    away.device = torch.device("cuda")

    def choose(name):
        build = MODELS[name]
        return make_back_end(make_config().learning, FlatModel(build(), CPU), away, build, 2, averaging)[0].name

    return choose


@pytest.mark.parametrize(
    ("model", "cores", "expected"),
    [
        ("small", 1, "stacked"),
        ("small", 8, "stacked"),
        ("wide", 1, "loop"),
        ("wide", 2, "workers"),
        ("convolutions", 1, "loop"),
        ("convolutions", 2, "workers"),
        ("own noise", 2, "workers"),
        ("three dense layers with batch norms", 1, "stacked"),
        ("four dense layers", 1, "loop"),
        ("normed", 1, "loop"),
        ("four norms", 1, "loop"),
        ("one layer often", 1, "loop"),
    ],
)
def test_auto_goes_by_the_model_and_the_cores(choose, model, cores, expected):
    assert choose(model, cores) == (expected, None)


@pytest.mark.parametrize(("model", "expected"), [("wide", "stacked"), ("convolutions", "loop"), ("normed", "loop")])
def test_off_the_processor_auto_stacks_no_deep_net_either(choose_off, model, expected):
    assert choose_off(model) == expected


def test_of_the_known_nets_the_dense_ones_alone_are_stacked():
    with torch.device("meta"):
        nets = {name: build((3, 32, 32), 10) for name, build in KNOWN.items() if not name.startswith("resnet")}
        nets |= {"resnet": KNOWN["resnet10-gn"]((3, 32, 32), 10), "torchvision": shufflenet_v2_x0_5()}
    assert [name for name, net in nets.items() if is_shallow_and_dense(net)] == ["linear", "mlp", "afl-mlp"]


@pytest.mark.parametrize(("cores", "instead"), [(1, "loop"), (2, "workers")])
def test_a_module_that_cannot_be_stacked_gets_another_back_end_and_says_so(choose, cores, instead):
    name, notice = choose("own noise", cores, back_end="stacked")
    assert name == instead
    assert notice.startswith("the model cannot be stacked (")
    assert notice.endswith(f"; training uses {instead!r}")
    assert "\n" not in notice


def test_where_shared_memory_is_short_auto_takes_the_loop_and_says_so(choose, monkeypatch):
    def full(*_):
        raise NoSharedMemory("2 workers need more")

    monkeypatch.setattr(back_ends, "WorkersBackEnd", full)
    assert choose("convolutions", 2) == ("loop", "2 workers need more; training uses 'loop'")
    with pytest.raises(NoSharedMemory):
        choose("convolutions", 2, back_end="workers")


def test_so_many_workers_as_asked_for_whatever_the_cores(choose, monkeypatch):
    counts = []
    real = back_ends.WorkersBackEnd
    monkeypatch.setattr(back_ends, "WorkersBackEnd", lambda *args: counts.append(args[3]) or real(*args))
    choose("convolutions", 2, workers=3)
    choose("convolutions", 2, back_end="workers")
    choose("convolutions", 1, back_end="workers")
    assert counts == [3, 2, 1]
