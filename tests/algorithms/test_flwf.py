"""FLwF: its term worked out by hand, and its first round."""

import math

import numpy as np
import pytest
import torch

from edgesim.learning.algorithms.flwf import Flwf
from edgesim.learning.algorithms.records import Device, Devices, Outputs, Sizes, State, Step
from edgesim.streams import Streams


@pytest.mark.parametrize(("round", "counts"), [(1, 0.0), (2, 1.0), (9, 1.0)])
def test_the_start_teaches_from_the_second_round_on(round, counts):
    """Logits (2 log 3, 0) and T 2: the teacher gives 3/4 and 1/4. Own logits (0, 0) give 1/2 and 1/2: log 2 each."""
    made = Flwf.Options(alpha=3.0), Sizes(0.0, 0, 1), Streams(0)
    given = Flwf.Server(*made).given(
        State(torch.zeros(1, dtype=torch.float64)), Device(0, 1, round, np.ones(1, dtype=np.int64), 1), None
    )
    teacher = Outputs(torch.tensor([[2 * math.log(3), 0.0]], dtype=torch.float64))
    own = Outputs(torch.tensor([[0.0, 4 * math.log(2)]], dtype=torch.float64))
    step = Step(own, {"start": teacher}, torch.tensor([1]), torch.ones(1), {"teaches": given["teaches"]})
    # Own logits divided by T are (0, 2 log 2): 1/5 and 4/5.
    distilled = -(0.75 * math.log(0.2) + 0.25 * math.log(0.8))
    expected = -math.log(16 / 17) + 3 * counts * distilled
    assert Flwf.Local(*made).loss(step).tolist() == pytest.approx([expected], abs=1e-12)


def test_a_frozen_forward_pass_costs_a_third():
    algorithm = Flwf.Local(Flwf.Options(), Sizes(0.0, 0, 1), Streams(0))
    device = Devices(np.array([0]), np.zeros((1, 0), dtype=np.int64), np.array([5]))
    assert algorithm.compute_factor(device, np.array([10]), 1, None) == pytest.approx([4 / 3])
