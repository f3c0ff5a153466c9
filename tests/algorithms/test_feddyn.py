"""FedDyn against numbers worked out by hand, and against its other published form."""

import itertools

import numpy as np
import pytest
import torch
from eight_weights import ROUNDS, START, THREE
from hypothesis import given, settings
from hypothesis import strategies as st
from quadratics import TWO, Play, Quadratic, with_and_without_buffers

from edgesim.config import DataConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.feddyn import FedDyn
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

ONE = {"alpha": 1.0, "adaptive": False}
THREE_SIZES = (Quadratic(1.0, samples=40), Quadratic(-2.0, 3.0, samples=10), Quadratic(4.0, 0.5, samples=5))


def corrections(play):
    """The mean of all g_i, and g_i of all devices."""
    own = [float(play.state.own.get(device, 0.0)) for device in range(len(play.devices))]
    return [float(play.state.mean), *own]


def test_a_device_that_is_away_still_moves_the_model():
    """alpha 1, lr .1, K 2. Round 1: .1, .1 - .1 (.1 - 1 + .1) = .18; -.6, -.6 - .1 (4.2 - .6) = -.96.

    Mean of the models -.39, of the g_i -.39: w = -.78. Round 2, device 1 alone with g -.96 from there:
    -.78 - .1 (3.66 - .96) = -1.05, -1.05 - .1 (2.85 - .96 - .27) = -1.212. Mean of the g_i (.18 - 1.392)/2 = -.606.
    """
    play = Play(FedDyn, TWO, ONE)
    assert play.round(0, 1) == pytest.approx(-0.78, abs=1e-12)
    assert corrections(play) == pytest.approx([-0.39, 0.18, -0.96], abs=1e-12)
    assert play.round(1) == pytest.approx(-1.212 - 0.606, abs=1e-12)
    assert corrections(play) == pytest.approx([-0.606, 0.18, -1.392], abs=1e-12)


def test_a_late_update_takes_its_weight_and_its_correction_counts_in_full():
    """Both start at 0; device 0 arrives in round 1: w = .18 + .09. Its next update, from .27 with g .18:

    .27 - .1 (-.73 + .18) = .325, .325 - .1 (-.675 + .18 + .055) = .369, so .099. Device 1 brings -.96.
    Mean of the g_i (.279 - .96)/2 = -.3405; w = .27 - .3405 + (.099 - .96)/2 = -.501, or with weights 2/3 and 1/3.
    """
    for age_weight, share in ((1.0, 1 / 2), (0.5, 1 / 3)):
        play = Play(FedDyn, TWO, ONE)
        in_time, late = play.begin(0, 1)
        assert play.merge([in_time]) == pytest.approx(0.27, abs=1e-12)
        model = play.merge([*play.begin(0), late], age_weight)
        assert model == pytest.approx(0.27 - 0.3405 + (1 - share) * 0.099 - share * 0.96, abs=1e-12)
        assert corrections(play) == pytest.approx([-0.3405, 0.279, -0.96], abs=1e-12)


def test_alpha_is_larger_for_devices_that_hold_less():
    """By sizes 40, 10 and 5 of 55: .1 times 55/3 over each; without ``adaptive`` .1 for all."""
    expected = [5.5 / 120, 5.5 / 30, 5.5 / 15]
    for adaptive, alphas in ((True, expected), (False, [0.1] * 3)):
        play = Play(FedDyn, THREE_SIZES, {"alpha": 0.1, "adaptive": adaptive})
        pulls = [play.local.pull(job.given) for job in play.begin(0, 1, 2)]
        assert [pull.to_start for pull in pulls] == pytest.approx(alphas, rel=1e-12)
        assert all(pull.shift is None for pull in pulls)
    assert (FedDyn.Options().alpha, FedDyn.Options().adaptive) == (0.01, True)


@pytest.mark.parametrize("adaptive", [True, False])
def test_at_the_best_local_model_alpha_times_g_is_minus_the_gradient_there(adaptive):
    play = Play(FedDyn, THREE_SIZES, {"alpha": 0.7, "adaptive": adaptive}, steps=400)
    for ids in ((0, 1, 2), (0, 2), (1,), (0, 1)):
        jobs = play.begin(*ids)
        before = {job.device: play.state.own.get(job.device, torch.zeros(1)) for job in jobs}
        play.merge(jobs)
        for job in jobs:
            end = job.given["start"] + play.state.own[job.device] - before[job.device]
            found = job.given["alpha"] * play.state.own[job.device]
            assert float(found) == pytest.approx(-float(THREE_SIZES[job.device].gradient(end)), abs=1e-9)


PATTERNS = [((0, 1, 2),) * 4, ROUNDS, ((0,), (1,), (2,), (0,)), ((1,), (0, 1, 2), (0, 2), (2,), (0, 1))]


@pytest.mark.parametrize("pattern", PATTERNS, ids=["all", "two", "one", "mixed"])
@pytest.mark.parametrize("adaptive", [False, True])
def test_it_is_the_papers_form_with_h_and_last_gradients(adaptive, pattern):
    """Algorithm 1 of the paper, written out: L_i of each device instead of - alpha g_i, h instead of - alpha mean g.

    Where it is adaptive, devices with 4, 2 and 1 of 7 images have alpha times 7/12, 7/6 and 7/3, the server alpha.
    """
    alpha, lr, h = 0.1, 0.5, torch.zeros(8, dtype=torch.float64)
    alphas = [alpha * 7 / 12, alpha * 7 / 6, alpha * 7 / 3] if adaptive else [alpha] * 3
    last = [torch.zeros(8, dtype=torch.float64) for _ in THREE]
    model = torch.tensor(START, dtype=torch.float64)
    play = Play(FedDyn, THREE, {"alpha": alpha, "adaptive": adaptive}, START, lr)
    for ids in pattern:
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


@pytest.mark.parametrize("pattern", PATTERNS, ids=["all", "two", "one", "mixed"])
def test_without_any_strength_it_is_not_fedavg(pattern):
    """Where all take part, the first step tends to twice that of FedAvg, and the rounds to come add up."""
    play = Play(FedDyn, THREE, {"alpha": 1e-9, "adaptive": False}, START, 0.5)
    fedavg = Play(Algorithm, THREE, {"weights": "equal"}, START, 0.5)
    start, gaps = torch.tensor(START, dtype=torch.float64), []
    for ids in pattern[:3]:
        play.round(*ids)
        fedavg.round(*ids)
        gaps.append(float((play.state.weights - fedavg.state.weights).abs().max()))
        if len(gaps) == 1:
            share = 1 + len(ids) / 3
            expected = start + share * (fedavg.state.weights - start)
            assert play.state.weights.tolist() == pytest.approx(expected.tolist(), abs=1e-8)
    assert 0.1 < max(gaps) < 0.9


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=6),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
)
def test_the_mean_is_that_of_all_g_i_whoever_comes_when(begun, lengths):
    """Updates of several models, and more than one of a device in a merge, as late ones may bring it about."""
    play, waiting = Play(FedDyn, THREE_SIZES, ONE), []
    for ids, length in zip(begun, itertools.cycle(lengths), strict=False):
        waiting += [job for device in ids for job in play.begin(device)]
        ready, waiting = waiting[:length], waiting[length:]
        play.merge(ready, age_weight=0.5)
        mean, *own = corrections(play)
        assert mean == pytest.approx(np.mean(own), abs=1e-9)


def test_two_unlike_devices_meet_at_the_best_model_of_their_mean_loss():
    """-1.25, whichever of the two is away now and then; FedAvg stays beside it."""
    play, fedavg = Play(FedDyn, TWO, ONE, steps=20), Play(Algorithm, TWO, steps=20)
    for number in range(200):
        ids = (0, 1) if number % 3 else (number // 3 % 2,)
        ends = play.round(*ids), fedavg.round(0, 1)
    assert ends[0] == pytest.approx(-1.25, abs=1e-3)
    assert abs(ends[1] + 1.25) > 0.3


def test_buffers_are_the_plain_mean_of_what_devices_ended_with():
    """Whatever an update weighs, and wherever it started."""
    play, plain = with_and_without_buffers(FedDyn)
    assert play.state.weights[1:].tolist() == [5.5, 3.0]
    assert float(play.state.weights[0]) == float(plain.state.weights[0])
    assert corrections(play) == corrections(plain)


def config(**round_):
    return parse(
        {
            "rounds": 4,
            "devices": {"count": 6},
            "learning": {"pretrain": False, "steps": 3},
            "round": {"admission": "count", "count": 3} | round_,
            "algorithm": {"name": "feddyn"},
            "data": {"partition": "fedteddi"},
        },
        "test",
    )


def test_a_run_on_digits_sends_the_model_each_way(tmp_path):
    """A model of 2,410 parameters has 77,120 bits."""
    simulation.run(config(), tmp_path / "run")
    rounds = read_table(tmp_path / "run", "rounds")
    assert rounds["arrived"].tolist() == [3] * 4
    assert rounds["bits_up"].tolist() == [3 * 77120] * 4
    assert rounds["bits_down"].tolist() == [6 * 77120] * 4
    assert read_table(tmp_path / "run", "updates")["weight"].tolist() == pytest.approx([1 / 3] * 12)


def test_in_a_run_alpha_is_scaled_by_the_data_of_all_devices():
    """The mean over devices of 1 / alpha_i is 1 / alpha, and sizes times alpha_i are all alike."""
    sized = config().model_copy(update={"data": DataConfig(partition="quantity", samples_per_device=12)})
    sized = simulation.complete(sized)
    federation = make_federation(sized, Streams(3))
    learner = TorchLearner(sized, federation, Streams(3))
    promises = learner.open_round(1, 1).start(np.array([4, 1, 5]))
    sizes = federation.frames[1].sizes
    assert len(set(sizes.tolist())) > 3
    found = [float(promise.job.given["alpha"]) for promise in promises]
    assert found == pytest.approx((0.01 * sizes.sum() / 6 / sizes[[4, 1, 5]]).tolist(), rel=1e-12)
