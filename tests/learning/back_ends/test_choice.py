import copy
import functools
import re
from types import SimpleNamespace

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
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def _layers(dense, *between):
    """A chain of so many dense layers with what ``between`` makes after each but the last; few parameters."""
    sizes = [768, *[16] * (dense - 1)]
    parts = [part for size in sizes[:-1] for part in (nn.Linear(size, 16), *(make() for make in between), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *parts, nn.Linear(sizes[-1], CLASSES))


def _norm():
    return nn.BatchNorm1d(16)


MODELS = {
    "small": functools.partial(_layers, 2),
    "three dense layers with batch norms": functools.partial(_layers, 3, _norm),
    "four dense layers": functools.partial(_layers, 4),
    "four norms": functools.partial(_layers, 3, _norm, _norm),
    "normed": functools.partial(_layers, 16, _norm),
    "one layer often": lambda: nn.Sequential(nn.Flatten(), nn.Linear(768, 8), *[nn.Linear(8, 8)] * 3, nn.Linear(8, 4)),
    "wide": lambda: nn.Sequential(nn.Flatten(), nn.Linear(768, 100), nn.ReLU(), nn.Linear(100, CLASSES)),
    "convolutions": functools.partial(make_model, "small-cnn", SHAPE, CLASSES),
    "own noise": lambda: nn.Sequential(nn.Flatten(), nn.AlphaDropout(0.5), nn.Linear(768, CLASSES)),
}


@pytest.fixture
def choose(make_config, data, averaging, monkeypatch):
    """Name, number of processes and notice of what is chosen; none is started, nor is anything done on a GPU."""
    monkeypatch.setattr(back_ends, "WorkersBackEnd", lambda *given: SimpleNamespace(name="workers", count=given[3]))

    def choose(model, cores=2, device=CPU, **learning):
        config, build, there = make_config(learning=learning).learning, MODELS[model], copy.copy(data)
        there.device = device
        with monkeypatch.context() as patch:
            if device == CUDA:
                patch.setattr(back_ends, "StackedBackEnd", lambda *_: SimpleNamespace(name="stacked"))
            found, notice = make_back_end(config, FlatModel(build(), CPU), there, build, cores, averaging)
        return found.name, getattr(found, "count", None), notice

    return choose


@pytest.mark.parametrize(
    ("model", "cores", "device", "expected"),
    [
        ("small", 1, CPU, "stacked"),
        ("small", 8, CPU, "stacked"),
        ("wide", 1, CPU, "loop"),
        ("wide", 2, CPU, "workers"),
        ("convolutions", 1, CPU, "loop"),
        ("convolutions", 2, CPU, "workers"),
        ("own noise", 2, CPU, "workers"),
        ("three dense layers with batch norms", 1, CPU, "stacked"),
        ("four dense layers", 1, CPU, "loop"),
        ("normed", 1, CPU, "loop"),
        ("four norms", 1, CPU, "loop"),
        ("one layer often", 1, CPU, "loop"),
        ("wide", 2, CUDA, "stacked"),
        ("convolutions", 2, CUDA, "loop"),
        ("normed", 2, CUDA, "loop"),
    ],
)
@pytest.mark.whole_family
def test_auto_goes_by_the_model_the_device_and_the_cores(choose, model, cores, device, expected):
    assert choose(model, cores, device) == (expected, cores if expected == "workers" else None, None)


def test_of_the_known_nets_the_dense_ones_alone_are_stacked():
    with torch.device("meta"):
        nets = {name: build((3, 32, 32), 10) for name, build in KNOWN.items() if not name.startswith("resnet")}
        nets |= {"resnet": KNOWN["resnet10-gn"]((3, 32, 32), 10), "torchvision": shufflenet_v2_x0_5()}
    assert [name for name, net in nets.items() if is_shallow_and_dense(net)] == ["linear", "mlp", "afl-mlp"]


@pytest.mark.parametrize(("cores", "instead"), [(1, "loop"), (2, "workers")])
def test_a_module_that_cannot_be_stacked_gets_another_back_end_and_says_so(choose, cores, instead):
    name, _, notice = choose("own noise", cores, back_end="stacked")
    assert name == instead
    assert re.fullmatch(rf"the model cannot be stacked \(.*\); training uses {instead!r}", notice)


def test_where_shared_memory_is_short_auto_takes_the_loop_and_says_so(choose, monkeypatch):
    def full(*_):
        raise NoSharedMemory("2 workers need more")

    monkeypatch.setattr(back_ends, "WorkersBackEnd", full)
    assert choose("convolutions", 2) == ("loop", None, "2 workers need more; training uses 'loop'")
    with pytest.raises(NoSharedMemory):
        choose("convolutions", 2, back_end="workers")


def test_so_many_workers_as_asked_for_whatever_the_cores(choose):
    asked = [(2, {"workers": 3}), (2, {"back_end": "workers"}), (1, {"back_end": "workers"})]
    assert [choose("convolutions", cores, **how)[1] for cores, how in asked] == [3, 2, 1]
