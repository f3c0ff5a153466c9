import pytest
import torch
from refusals import in_one_line
from torch import nn

from edgesim.base.errors import EdgesimError
from edgesim.learning.determinism import refuse_nondeterminism
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import new_model
from edgesim.learning.torch_settings import reproducible

CPU = torch.device("cpu")

PUTS = """
import torch
from torch import nn

class Puts(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.linear = nn.Linear(inputs, classes)

    def forward(self, images):
        x = images.flatten(1).clone()
        if self.training:
            x.put_(torch.tensor([0, 1]), x.new_zeros(2))
        return self.linear(x)

def puts(image_shape, class_count):
    return Puts(64, class_count)
"""


class Raises(torch.autograd.Function):
    """The backward pass of an operation of which torch has no deterministic version on a GPU."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if torch.are_deterministic_algorithms_enabled():
            raise RuntimeError(
                "adaptive_avg_pool2d_backward_cuda does not have a deterministic implementation, but you set "
                "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation."
            )
        return gradient


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 2)

    def forward(self, images):
        return Raises.apply(self.linear(images.flatten(1)))


def test_a_model_with_an_operation_that_is_never_deterministic_is_one_line(make_learner, tmp_path, monkeypatch):
    """`torch.Tensor.put_` is refused on every device."""
    (tmp_path / "putting.py").write_text(PUTS)
    monkeypatch.syspath_prepend(tmp_path)
    with in_one_line(r"'putting.puts' uses put_, which is not deterministic on a cpu"):
        make_learner(learning={"model": "putting.puts"})


def test_a_backward_pass_that_is_not_deterministic_is_named():
    model = FlatModel(Pools(), CPU)
    with reproducible(CPU), pytest.raises(EdgesimError, match="uses adaptive_avg_pool2d_backward_cuda, which"):
        refuse_nondeterminism(model, "pools", (1, 4, 4))


@pytest.mark.parametrize("name", ["mlp", "small-cnn", "fedteddi-cnn", "resnet10-bn"])
def test_our_own_models_pass_and_are_as_they_were(name):
    model = FlatModel(new_model(name, (3, 32, 32), 10, 0), CPU)
    before, random = model.state(), torch.get_rng_state()
    with reproducible(CPU):
        refuse_nondeterminism(model, name, (3, 32, 32))
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state().items())
    assert not model.gradient.any()


def test_other_errors_are_left_to_whoever_wrote_the_model():
    class Broken(Pools):
        def forward(self, images):
            raise RuntimeError("my own mistake")

    with reproducible(CPU), pytest.raises(RuntimeError, match="my own mistake"):
        refuse_nondeterminism(FlatModel(Broken(), CPU), "broken", (1, 4, 4))
