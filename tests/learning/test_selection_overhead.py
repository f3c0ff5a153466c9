import pytest
import torch
from torch import nn

from edgesim.learning.models import new_model
from edgesim.learning.selection_overhead import of_feddance, of_oort


def test_feddance_reads_loss_and_accuracy_off_the_logits():
    logits = torch.tensor([[0.0, 0.0], [0.0, 50.0]])
    loss, accuracy = of_feddance(logits, torch.tensor([1, 1]))
    # ln 2 for the undecided sample, whose answer is the first class; nothing for the sure one.
    assert loss == pytest.approx(0.693147 / 2, abs=1e-6)
    assert accuracy == 0.5


def test_oort_passes_all_samples_through_the_model():
    model = new_model("small-cnn", (1, 28, 28), 47, 0).eval()
    images, labels = torch.rand(70, 1, 28, 28), torch.arange(70) % 47
    losses = nn.CrossEntropyLoss(reduction="none")(model(images), labels).detach()
    seen = []
    model.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    assert of_oort(model, images, labels, 32) == pytest.approx(float(losses.square().mean().sqrt()), rel=1e-5)
    assert seen == [32, 32, 6]
