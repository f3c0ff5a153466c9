import functools

import pytest
import torch
from torch import nn

from edgesim.learning import back_ends
from edgesim.learning.back_ends import make_back_end
from edgesim.learning.back_ends.workers import NoSharedMemory
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import make_model
from edgesim.learning.tensors import DeviceData

SHAPE, CLASSES = (3, 16, 16), 4
CPU = torch.device("cpu")


def _wide():
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 100), nn.ReLU(), nn.Linear(100, CLASSES))


def _own_noise():
    return nn.Sequential(nn.Flatten(), nn.AlphaDropout(0.5), nn.Linear(768, CLASSES))


def _small():
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 16), nn.ReLU(), nn.Linear(16, CLASSES))


MODELS = {
    "small": _small,
    "wide": _wide,
    "convolutions": functools.partial(make_model, "small-cnn", SHAPE, CLASSES),
    "own noise": _own_noise,
}


@pytest.fixture
def choose(make_config, data):
    def choose(model, cores=2, **learning):
        build = MODELS[model]
        config = make_config(learning=learning).learning
        back_end, notice = make_back_end(config, FlatModel(build(), CPU), data, build, cores)
        back_end.close()
        return back_end.name, notice

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
    ],
)
def test_auto_goes_by_the_model_and_the_cores(choose, model, cores, expected):
    assert choose(model, cores) == (expected, None)


@pytest.mark.parametrize("name", ["loop", "workers", "stacked"])
def test_what_is_asked_for_is_had(choose, name):
    assert choose("convolutions", back_end=name) == (name, None)


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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_auto_stacks_what_can_be_stacked(make_config, dataset):
    gpu = torch.device("cuda")
    data = DeviceData(dataset, gpu)
    for model, expected in (("convolutions", "stacked"), ("wide", "stacked"), ("own noise", "loop")):
        config = make_config().learning
        back_end, _ = make_back_end(config, FlatModel(MODELS[model]().to(gpu), gpu), data, MODELS[model], 2)
        assert back_end.name == expected
