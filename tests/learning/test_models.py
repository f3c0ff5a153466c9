import pytest
import torch
import torchvision
from refusals import in_one_line
from torch import nn

import edgesim
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import MODELS, make_model

_OWN = """
import torch
from torch import nn

def net(image_shape, class_count):
    return nn.Sequential(nn.Flatten(), nn.Linear(image_shape[0] * image_shape[1] * image_shape[2], class_count))

def wide(image_shape, class_count):
    return net(image_shape, class_count + 1)

def fails(image_shape, class_count):
    raise RuntimeError("first line" + chr(10) + "second line")

def double(image_shape, class_count):
    return net(image_shape, class_count).double()

def nothing(image_shape, class_count):
    return None

class Net(nn.Sequential):
    def __init__(self, image_shape, class_count):
        super().__init__(nn.Flatten(), nn.Linear(64, class_count))

class Auxiliary(Net):
    def forward(self, images):
        logits = super().forward(images)
        return (logits, logits) if self.training else logits

def frozen(image_shape, class_count):
    return net(image_shape, class_count).requires_grad_(False)

def ranked(image_shape, class_count, rank=2, *, bias=True):
    inner = nn.Linear(64, rank, bias=bias)
    return nn.Sequential(nn.Flatten(), inner, nn.Linear(rank, class_count))

def needy(image_shape, class_count, *, rank):
    return ranked(image_shape, class_count, rank)

def bare():
    return net((1, 8, 8), 10)

def shapeless(class_count, **options):
    return net((1, 8, 8), class_count)

def demanding(image_shape, class_count, seed, /):
    return net(image_shape, class_count)

instance = Net((1, 8, 8), 10)
number = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    name = "own_models_of_a_test"
    (tmp_path / f"{name}.py").write_text(_OWN)
    (tmp_path / "broken_models_of_a_test.py").write_text("def net(:")
    (tmp_path / "failing_models_of_a_test.py").write_text("raise RuntimeError('no licence' + chr(10))")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_users_callable_is_found_by_its_dotted_path(own_module):
    model = make_model(f"{own_module}.net", (1, 8, 8), 10)
    assert sum(parameter.numel() for parameter in model.parameters()) == 650
    assert isinstance(make_model(f"{own_module}.Net", (1, 8, 8), 10), nn.Sequential)


OWN, OPTIONS = "own_models_of_a_test", "learning.model_options: "
RANKED = f"{OPTIONS}'{OWN}.ranked' cannot be called with them: "


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (f"{OWN}.wide", {}, r"learning.model: .*shape \(2, 11\), expected \(2, 10\)"),
        (f"{OWN}.fails", {}, "learning.model: .*first line$"),
        (f"{OWN}.double", {}, "learning.model: .*must be float32"),
        (f"{OWN}.nothing", {}, "learning.model: .*returned a NoneType"),
        (f"{OWN}.number", {}, "learning.model: .*is of type int, expected a callable"),
        (f"{OWN}.instance", {}, "learning.model: .*is of type Net, expected a callable"),
        (f"{OWN}.Auxiliary", {}, r"learning.model: .*its output is a tuple, expected a tensor \(2, 10\)"),
        (f"{OWN}.frozen", {}, "learning.model: .*no trainable parameter"),
        (f"{OWN}.missing", {}, "learning.model: cannot import"),
        (f"{OWN}.bare", {}, r"has the arguments \(\), expected a callable \(image_shape, .*: too many positional"),
        (f"{OWN}.shapeless", {}, r"has the arguments \(class_count, \*\*options\), expected .*: too many positional"),
        (f"{OWN}.demanding", {}, r"has the arguments .* '?seed'?"),
        ("broken_models_of_a_test.net", {}, "learning.model: cannot import 'broken_.*.net': SyntaxError: "),
        ("failing_models_of_a_test.net", {}, "learning.model: cannot import 'failing_.*: RuntimeError: no licence$"),
        ("no_such_package.net", {}, r"cannot import 'no_such_package.net'.*PYTHONPATH"),
        ("fedtedi-cnn", {}, "unknown model 'fedtedi-cnn', did you mean 'fedteddi-cnn'"),
        ("torchvision:shufflenet", {}, "no classifier 'shufflenet'"),
        ("torchvision:resnet81", {}, "did you mean 'torchvision:resnet18'"),
        ("torchvision:alexnet", {}, r"does not fit images of shape \(1, 8, 8\): .*too small"),
        (f"{OWN}.ranked", {"rang": 4}, f"{RANKED}got an unexpected .* 'rang'; its options are rank, bias$"),
        (f"{OWN}.ranked", {"class_count": 4}, f"{RANKED}multiple values for argument 'class_count'; its options are"),
        (f"{OWN}.net", {"rank": 4}, f"{OPTIONS}.*'rank'; it takes no options$"),
        (f"{OWN}.needy", {}, f"{OPTIONS}.*missing a required .*argument: 'rank'; its options are rank$"),
        ("mlp", {"rank": 4}, f"^{OPTIONS}'mlp' cannot be .* 'rank'; it takes no options$"),
        ("torchvision:resnet18", {"rank": 4}, r"with learning.model_options = \{'rank': 4\} does not fit .*'rank'$"),
        ("torchvision:resnet18", {"num_classes": 4}, "multiple values for keyword argument 'num_classes'$"),
    ],
)
def test_a_model_that_is_not_there_does_not_fit_or_takes_no_such_options_is_one_line(own_module, name, options, words):
    with in_one_line(words):
        make_model(name, (1, 8, 8), 10, options=options)


def test_a_model_is_made_with_its_options(own_module):
    """By hand: 64 r weights, r or no biases, and 10 r + 10 behind them."""

    def size(name, **options):
        model = make_model(name, (1, 8, 8), 10, options=options)
        return sum(parameter.numel() for parameter in model.parameters())

    assert size(f"{own_module}.ranked") == 128 + 2 + 20 + 10
    assert size(f"{own_module}.ranked", rank=8, bias=False) == 512 + 80 + 10
    assert size(f"{own_module}.needy", rank=4) == 256 + 4 + 40 + 10
    wide, narrow = (size("torchvision:mobilenet_v2", width_mult=factor) for factor in (1.0, 0.5))
    assert narrow < 0.5 * wide


def test_options_of_a_model_are_part_of_its_runs_and_start_models(own_module, tmp_path):
    """Start models of different options are kept apart as well, and a run of other options is not reused."""
    learning = {"model": f"{own_module}.ranked", "steps": 1, "back_end": "loop", "pretrain_max_epochs": 1}
    base = {
        "rounds": 1,
        "devices": {"count": 3},
        "round": {"tmax_s": 30.0},
        "learning": learning | {"pretrain": True},
        "evaluation": {"samples": 20},
        "data": {"partition": "fedteddi"},
    }
    for rank, size in ((2, 128 + 2 + 20 + 10), (3, 192 + 3 + 30 + 10)):
        run = edgesim.run(base, tmp_path / f"{rank}", {"learning.model_options.rank": rank}, quiet=True)
        assert edgesim.read_run(run.folder)["parameters"] == size
    with in_one_line(r"another config \(learning.model_options.rank differs\)"):
        edgesim.run(base, tmp_path / "2", {"learning.model_options.rank": 3}, quiet=True)


def _count(model, kind):
    return sum(isinstance(layer, kind) for layer in model.modules())


@pytest.mark.parametrize(("depth", "convolutions"), [(10, 12), (18, 20), (34, 36)])
def test_a_resnet_has_the_depth_and_the_norm_of_its_name(depth, convolutions):
    # Its depth counts the head and not the three 1x1 projections.
    for norm, kind, other in (("gn", nn.GroupNorm, nn.BatchNorm2d), ("bn", nn.BatchNorm2d, nn.GroupNorm)):
        with torch.device("meta"):
            model = MODELS[f"resnet{depth}-{norm}"]((3, 32, 32), 100)
        assert (_count(model, nn.Conv2d), _count(model, kind), _count(model, other)) == (convolutions, convolutions, 0)


def test_the_small_stem_keeps_the_resolution_and_imagenets_quarters_it():
    images = torch.zeros(1, 3, 32, 32)
    small, large = (make_model(name, (3, 32, 32), 10) for name in ("resnet10-gn", "resnet10-gn-imagenet"))
    assert small.maxpool(small.conv1(images)).shape == (1, 64, 32, 32)
    assert large.maxpool(large.conv1(images)).shape == (1, 64, 8, 8)


def test_the_resnet_with_imagenets_stem_is_torchvisions_own():
    ours = make_model("resnet18-bn-imagenet", (3, 64, 64), 10)
    theirs = torchvision.models.resnet18(num_classes=10)
    theirs.load_state_dict(ours.state_dict())
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours(images), theirs.eval()(images), rtol=0, atol=0)


def test_parameters_that_do_not_train_are_no_part_of_the_vector_but_of_what_is_saved():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 2))
    module[0].requires_grad_(False)
    flat = FlatModel(module, torch.device("cpu"))
    assert flat.trainable == 8 + 36 * 2 + 2
    assert "0.weight" in flat.state()


def test_checking_a_model_leaves_its_buffers_as_they_were():
    for name, buffer in make_model("resnet10-bn", (3, 8, 8), 10).named_buffers():
        assert torch.equal(buffer, torch.full_like(buffer, 1 if name.endswith("running_var") else 0)), name


def test_a_torchvision_classifier_gets_the_runs_classes_and_channels():
    model = make_model("torchvision:shufflenet_v2_x0_5", (1, 32, 32), 7)
    assert model(torch.zeros(3, 1, 32, 32)).shape == (3, 7)
    first = next(layer for layer in model.modules() if isinstance(layer, nn.Conv2d))
    assert (first.in_channels, first.stride, first.padding, first.bias) == (1, (2, 2), (1, 1), None)
    assert make_model("torchvision:googlenet", (3, 32, 32), 7).train()(torch.zeros(2, 3, 32, 32)).shape == (2, 7)
