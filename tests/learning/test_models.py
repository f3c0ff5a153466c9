import pytest
import torch
from torch import nn

from edgesim.errors import EdgesimError
from edgesim.learning.models import make_model, source_text

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

number = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    name = "own_models_of_a_test"
    (tmp_path / f"{name}.py").write_text(_OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_users_callable_is_found_by_its_dotted_path(own_module):
    model = make_model(f"{own_module}.net", (1, 8, 8), 10)
    assert sum(parameter.numel() for parameter in model.parameters()) == 650
    assert "def fails" in source_text(f"{own_module}.net")


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ("wide", r"shape \(2, 11\), expected \(2, 10\)"),
        ("fails", "first line$"),
        ("double", "must be float32"),
        ("nothing", "returned a NoneType"),
        ("number", "is not callable"),
        ("missing", "cannot import"),
    ],
)
def test_a_users_callable_that_does_not_fit_is_one_line(own_module, attribute, words):
    with pytest.raises(EdgesimError, match=words) as caught:
        make_model(f"{own_module}.{attribute}", (1, 8, 8), 10)
    assert str(caught.value).startswith("learning.model: ")
    assert "\n" not in str(caught.value)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(EdgesimError, match="unknown 'fedtedi-cnn', did you mean 'fedteddi-cnn'"):
        make_model("fedtedi-cnn", (3, 32, 32), 10)


def test_a_module_that_is_not_there_is_one_line():
    with pytest.raises(EdgesimError, match=r"cannot import 'no_such_package.net'.*PYTHONPATH"):
        make_model("no_such_package.net", (3, 32, 32), 10)


def test_the_resnet_has_group_norms_and_keeps_the_resolution_of_its_stem():
    model = make_model("resnet18-gn", (3, 32, 32), 100)
    assert not any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in model.modules())
    assert model.maxpool(model.conv1(torch.zeros(1, 3, 32, 32))).shape == (1, 64, 32, 32)
