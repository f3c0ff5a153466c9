"""FedDyn against its other published form, and its corrections; `test_worked_numbers` has its models."""

import numpy as np
import pytest
import torch
from contract import make_config, new_learner
from eight_weights import START, THREE
from quadratics import TWO, Play
from test_reductions import MIXED

from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.feddyn import FedDyn

ONE = {"alpha": 1.0, "adaptive": False}


@pytest.mark.parametrize("adaptive", [False, True])
def test_it_is_the_papers_form_with_h_and_last_gradients(adaptive):
    """Algorithm 1 of the paper, written out: L_i of each device instead of - alpha g_i, h instead of - alpha mean g.

    Where it is adaptive, devices with 4, 2 and 1 of 7 images have alpha times 7/12, 7/6 and 7/3, the server alpha.
    """
    alpha, lr, h = 0.1, 0.5, torch.zeros(8, dtype=torch.float64)
    alphas = [alpha * 7 / 12, alpha * 7 / 6, alpha * 7 / 3] if adaptive else [alpha] * 3
    last = [torch.zeros(8, dtype=torch.float64) for _ in THREE]
    model = torch.tensor(START, dtype=torch.float64)
    play = Play(FedDyn, THREE, {"alpha": alpha, "adaptive": adaptive}, START, lr)
    for ids in MIXED:
        ends = []
        for device in ids:
            end = model.clone()
            for _ in range(2):
                end = end - lr * (THREE[device].gradient(end) - last[device] + alphas[device] * (end - model))
            last[device] = last[device] - alphas[device] * (end - model)
            ends.append(end)
        h = h - alpha / 3 * sum(end - model for end in ends)
        model = sum(ends) / len(ends) - h / alpha
        play.round(*ids)
        assert play.state.weights.tolist() == pytest.approx(model.tolist(), abs=1e-12)


def test_two_unlike_devices_meet_at_the_best_model_of_their_mean_loss():
    """-1.25, whichever of the two is away now and then; FedAvg stays beside it."""
    play, fedavg = Play(FedDyn, TWO, ONE, steps=20), Play(Algorithm, TWO, steps=20)
    for number in range(45):
        ids = (0, 1) if number % 3 else (number // 3 % 2,)
        ends = play.round(*ids), fedavg.round(0, 1)
    assert ends[0] == pytest.approx(-1.25, abs=1e-3)
    assert abs(ends[1] + 1.25) > 0.3


def test_in_a_run_alpha_is_scaled_by_the_data_of_all_devices():
    """The mean over devices of 1 / alpha_i is 1 / alpha, and sizes times alpha_i are all alike."""
    learner, ids = new_learner(make_config(("feddyn", "own"))), np.array([4, 1, 5])
    sizes = learner.federation.frames[1].sizes
    assert len(set(sizes.tolist())) > 3
    found = [float(promise.job.given["alpha"]) for promise in learner.open_round(1, 1).start(ids)]
    assert found == pytest.approx((0.01 * sizes.sum() / 8 / sizes[ids]).tolist(), rel=1e-6)
