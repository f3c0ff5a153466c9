"""SCAFFOLD's controls; `test_worked_numbers` and `test_plain_server` have its models."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from quadratics import THREE_SIZES, TWO, Play

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.feddyn import FedDyn
from edgesim.learning.algorithms.records import Devices, Sizes
from edgesim.learning.algorithms.scaffold import Scaffold, effective_steps
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams


def controls(play):
    """c, and c_i of all devices; under FedDyn the mean of all g_i, and these."""
    own = [float(play.state.own.get(device, 0.0)) for device in range(len(play.devices))]
    return [float(play.state.shared["control"] if play.kind is Scaffold else play.state.mean), *own]


def test_divided_by_k_instead_controls_grow_without_bound_under_momentum(monkeypatch):
    """Largest |c_i| of the first 10, 20, 40 rounds, 20 steps at .02: why a config that asks for it is refused."""
    monkeypatch.setattr("edgesim.learning.algorithms.scaffold.effective_steps", lambda steps, momentum: steps)
    play, largest = Play(Scaffold, TWO, lr=0.02, steps=20, momentum=0.9), [0.0]
    for _ in range(40):
        play.round(0, 1)
        largest.append(max(largest[-1], *map(abs, controls(play)[1:])))
    assert [round(largest[number]) for number in (10, 20, 40)] == [21, 98, 2118]


def test_the_pass_of_option_i_costs_one_epoch_in_as_many_as_there_are():
    """1 + 1 / E with E = 5, 2 and 1/2 epochs of 4, 6 and 8 samples."""
    devices = Devices(np.arange(3), np.zeros((3, 0), dtype=np.int64), np.array([4, 6, 8]))
    for option, expected in (("I", [1.2, 1.5, 3.0]), ("II", [1.0, 1.0, 1.0])):
        algorithm = Scaffold.Local(Scaffold.Options(option=option), Sizes(32.0, 1, 3), Streams(0))
        assert algorithm.compute_factor(devices, np.array([20, 12, 4]), 1, None).tolist() == expected


@settings(max_examples=100)
@given(
    st.sampled_from(
        [(Scaffold, {"option": "I"}), (Scaffold, {"option": "II"}), (FedDyn, {"alpha": 1.0, "adaptive": False})]
    ),
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=6),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
)
def test_c_is_the_mean_of_all_c_i_whoever_comes_when(kind, begun, lengths):
    """Oracle T9 of dpfl-kpfl.md, and FedDyn's mean of all g_i; as in a buffer: updates of several models, some of one
    device, by their beginning.
    """
    play, waiting = Play(kind[0], THREE_SIZES, kind[1]), []
    for ids, length in zip(begun, itertools.cycle(lengths), strict=False):
        waiting += [job for device in ids for job in play.begin(device)]
        ready, waiting = waiting[:length], waiting[length:]
        play.merge(ready, age_weight=0.5)
        control, *own = controls(play)
        assert control == pytest.approx(np.mean(own), abs=1e-9)


@pytest.mark.parametrize(("option", "momentum", "steps", "lr"), [("I", 0.0, 2, 0.1), ("II", 0.9, 20, 0.02)])
def test_two_unlike_devices_meet_at_the_best_model_of_their_mean_loss(momentum, steps, lr, option):
    """-1.25. FedAvg stays beside it: its devices drift apart in a round, and do not see that the others do."""
    settings = {"lr": lr, "steps": steps, "momentum": momentum}
    scaffold, fedavg = Play(Scaffold, TWO, {"option": option}, **settings), Play(Algorithm, TWO, **settings)
    for _ in range(50):
        ends = [play.round(0, 1) for play in (scaffold, fedavg)]
    assert ends[0] == pytest.approx(-1.25, abs=1e-6)
    assert abs(ends[1] + 1.25) > 0.05
    assert controls(scaffold) == pytest.approx([0, -2.25, 2.25], abs=1e-5)


@pytest.mark.parametrize(("steps", "expected"), [(1, 1.0), (2, 2.9), (20, 120.9418989132)])
def test_effective_steps_are_the_learning_rates_that_torchs_sgd_moves_by(steps, expected):
    weight = torch.zeros(1, dtype=torch.float64)
    optimiser = torch.optim.SGD([weight], lr=1.0, momentum=0.9)
    for _ in range(steps):
        weight.grad = -torch.ones(1, dtype=torch.float64)
        optimiser.step()
    assert effective_steps(steps, 0.9) == pytest.approx(expected, abs=1e-9)
    assert effective_steps(steps, 0.9) == pytest.approx(float(weight), rel=1e-12)
    assert effective_steps(steps, 0.0) == steps


def config(**algorithm):
    return {
        "rounds": 4,
        "devices": {"count": 6},
        "learning": {"pretrain": False, "steps": 3},
        "round": {"admission": "count", "count": 3},
        "algorithm": {"name": "scaffold"} | algorithm,
        "data": {"partition": "fedteddi"},
    }


def test_derived_controls_change_no_model(tmp_path):
    """That they are not sent is seen in the bits that contract tests count."""
    for folder, derive in (("sent", False), ("derived", True)):
        simulation.run(parse(config(derive_control=derive), "test"), tmp_path / folder)
    sent, derived = (tmp_path / folder / "model.safetensors" for folder in ("sent", "derived"))
    assert sent.read_bytes() == derived.read_bytes()


def test_a_timed_download_of_twice_the_bits_takes_twice_as_long(tmp_path):
    for name in ("fedavg", "scaffold"):
        values = config() | {"algorithm": {"name": name}}
        values["round"] = values["round"] | {"download_s": 0.1}
        simulation.run(parse(values, "test"), tmp_path / name)
        downloads = read_table(tmp_path / name, "activities").query("activity == 'download'")
        lasted_s = downloads["t_end_s"] - downloads["t_start_s"]
        assert lasted_s.tolist() == pytest.approx([0.1 if name == "fedavg" else 0.2] * len(downloads))
