"""MIFA against numbers worked out by hand or by programs that share nothing with this one."""

import numpy as np
import pytest
import torch
from contract import make_config
from hypothesis import given, settings
from hypothesis import strategies as st
from quadratics import TWO, Play, Quadratic, with_and_without_buffers

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.fedprox import FedProx, FedProxOptions
from edgesim.learning.algorithms.mifa import Mifa
from edgesim.simulation import composition as simulation

THREE_SIZES = (Quadratic(1.0, samples=40), Quadratic(-2.0, 3.0, samples=10), Quadratic(4.0, 0.5, samples=5))


class Moves(Quadratic):
    """A device that one step at a learning rate of .1 moves by -.1 times ``best``, whatever its weights."""

    def gradient(self, weights):
        """G, [2]."""
        return torch.tensor(self.best, dtype=torch.float64)


def test_the_model_moves_along_the_mean_of_what_all_devices_brought():
    """Oracle T9 of dpfl-kpfl.md: G = (1, 0), (0, 2), (-1, 1), whose mean is (0, 1); eta .1, from 0: (0, -.1)."""
    play = Play(Mifa, [Moves(each) for each in ((1.0, 0.0), (0.0, 2.0), (-1.0, 1.0))], start=(0.0, 0.0), steps=1)
    play.round(0, 1, 2)
    assert play.state.weights.tolist() == pytest.approx([0, -0.1], abs=1e-15)


def test_a_device_that_is_away_counts_with_what_it_brought_last():
    """lr .1, K 2. Round 1 from 0: device 0 ends at .19, device 1 at -1.02; G = (-1.9, 10.2), w = -.1 8.3/2 = -.415.

    Round 2, device 1 alone: -.415 - .1 4.755 = -.8905, -.8905 - .1 3.3285 = -1.22335, G_1 = .80835/.1 = 8.0835;
    w = -.415 - .05 (8.0835 - 1.9) = -.724175. In round 3 both come again.
    """
    play = Play(Mifa, TWO)
    assert [play.round(*ids) for ids in ((0, 1), (1,), (0, 1))] == pytest.approx(
        [-0.415, -0.724175, -0.88571375], abs=1e-12
    )


def test_with_some_of_the_devices_seen_the_step_is_as_much_smaller():
    """Device 0 arrives in round 1: .19/2 = .095. In round 2 its next update and device 1's first, -1.02 from 0, do.

    Device 0 from .095: .095 + .0905 = .1855, .1855 + .08145 = .26695. w = .095 + (.17195 - 1.02)/2 = -.329025,
    whatever the late update's age would weigh.
    """
    for age_weight in (1.0, 0.3):
        play = Play(Mifa, TWO)
        early, late = play.begin(0, 1)
        assert play.merge([early]) == pytest.approx(0.095, abs=1e-12)
        assert play.merge([*play.begin(0), late], age_weight) == pytest.approx(-0.329025, abs=1e-12)
        assert play.alpha.tolist() == [0.5, 0.5]


def test_what_a_device_brought_counts_by_how_far_the_rate_has_fallen_since():
    """At a rate of .08 / (t + 1) an update of round 2 counts 3/4 in round 3 and 3/5 in round 4.

    Device 0 moves by -eta 5 in rounds 1 and 2 alone; device 1, which is there in every round, stays where it is.
    """
    play = Play(Mifa, [Moves((5.0,)), Moves((0.0,))], lr=lambda round: 0.08 / (round + 1), steps=1)
    models = [play.round(0, 1), play.round(0, 1), play.round(1), play.round(1)]
    brought = -0.08 / 3 * 5 / 2
    assert np.diff(models).tolist() == pytest.approx([brought, brought * 3 / 4, brought * 3 / 5], abs=1e-15)


def test_a_run_can_have_a_rate_at_which_what_was_brought_counts_by_one_over_the_rounds(tmp_path):
    """DPFL's own rate, .08 / (t + 1): what began in round tau counts (tau + 1) / (t + 1) in round t."""
    late = make_config(("mifa", "own"), "late", training="none", lr=0.04, lr_offset=1.0)
    simulation.run(late, tmp_path)
    updates = read_table(tmp_path, "updates")
    began = updates["task"]
    assert sorted((updates["round"] - began).unique()) == [0, 1]
    expected = (began + 1) / (updates["round"] + 1) / late.devices.count
    np.testing.assert_allclose(updates["weight"], expected, rtol=1e-14)


@pytest.mark.parametrize("lr", [0.1, lambda round: 0.1 / round])
def test_with_all_devices_every_round_is_that_of_fedavg_with_equal_weights(lr):
    mifa = Play(Mifa, THREE_SIZES, lr=lr, momentum=0.5)
    fedavg = Play(Algorithm, THREE_SIZES, {"weights": "equal"}, lr=lr, momentum=0.5)
    for _ in range(4):
        assert mifa.round(0, 1, 2) == pytest.approx(fedavg.round(0, 1, 2), abs=1e-12)
        assert mifa.alpha.tolist() == pytest.approx([1 / 3] * 3)


def test_an_update_counts_by_the_rate_of_its_training_and_that_of_its_round():
    """Trained at .4 and merged at .2 by one of two devices: half of a half."""
    play = Play(Mifa, TWO, lr=lambda round: 0.4 / round)
    early, late = play.begin(0, 1)
    play.merge([early])
    play.merge([late])
    assert play.alpha.tolist() == pytest.approx([0.25])


def test_a_late_update_is_divided_by_the_rate_of_its_training_and_multiplied_by_that_of_the_step():
    """Rates .1 and then .05; device 0 arrives in round 1, w = .095, and device 1's work from 0 in round 2, G_1 = 10.2.

    Device 0 from .095: .095 + .05 .905 = .14025, .14025 + .05 .85975 = .1832375, G_0 = -.0882375/.05 = -1.76475.
    w = .095 - .05 (10.2 - 1.76475)/2 = -.11588125.
    """
    play = Play(Mifa, TWO, lr=lambda round: 0.1 / round)
    early, late = play.begin(0, 1)
    assert play.merge([early]) == pytest.approx(0.095, abs=1e-12)
    assert play.merge([late, *play.begin(0)]) == pytest.approx(-0.11588125, abs=1e-12)


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True), min_size=1, max_size=6))
def test_while_it_waits_the_model_stays_and_devices_are_remembered(rounds):
    play, seen = Play(Mifa, THREE_SIZES, {"wait": True}), set()
    for ids in rounds:
        seen |= set(ids)
        model = play.round(*ids)
        assert set(play.state.entries) == seen
        if len(seen) == 3:
            # All entries were taken at the first model.
            assert model == pytest.approx(Play(Mifa, THREE_SIZES).round(0, 1, 2), abs=1e-12)
            break
        assert model == 0.0


def test_of_two_updates_of_a_device_in_one_buffer_the_later_one_stays():
    play, twice = Play(Mifa, TWO), Play(Mifa, TWO)
    first = play.begin(1)
    play.round(0)
    play.merge([*first, *play.begin(1)])
    twice.round(0)
    twice.round(1)
    assert float(play.state.weights[0]) == float(twice.state.weights[0])


def test_buffers_are_the_plain_mean_of_what_devices_ended_with():
    """Whatever an update weighs, and wherever it started; while the server waits they stay with the model."""
    play, plain = with_and_without_buffers(Mifa)
    assert play.state.weights[1:].tolist() == [5.5, 3.0]
    assert float(play.state.weights[0]) == float(plain.state.weights[0])
    waiting = Play(Mifa, play.devices, {"wait": True}, start=(0.0, 5.0, 5.0))
    waiting.round(0)
    assert waiting.state.weights.tolist() == [0, 5, 5]


def test_it_stands_beside_another_local_objective():
    """FedProx with mu 1 ends at .18 and -.96, of which MIFA makes -.39 with both; then device 1 alone.

    From -.39: -.39 - .1 3 1.61 = -.873, -.873 - .1 (3 1.127 - .483) = -1.1628. w = -.39 + (.18 - .7728)/2 = -.6864.
    """
    play = Play(Mifa, TWO)
    play.local = FedProx.Local(FedProxOptions(mu=1.0), play.server.sizes, play.server.streams)
    assert play.round(0, 1) == pytest.approx(-0.39, abs=1e-12)
    assert play.round(1) == pytest.approx(-0.6864, abs=1e-12)


def config(**sections):
    return {
        "rounds": 4,
        "devices": {"count": 6},
        "learning": {"pretrain": False, "steps": 3},
        "round": {"admission": "count", "count": 3},
        "algorithm": {"name": "mifa"},
        "data": {"partition": "fedteddi"},
    } | sections


BUFFERED = {"protocol": "buffered", "count": 3, "admission": "count", "protocol_options": {"buffer": 2}}


@pytest.mark.parametrize(
    "sections",
    [{}, {"round": BUFFERED}, {"algorithm": {"name": "fedprox", "mu": 0.1, "server": "mifa", "wait": True}}],
    ids=["in rounds", "buffered", "around fedprox, waiting"],
)
def test_a_run_on_digits_sends_the_model_each_way(tmp_path, sections):
    """A model of 2,410 parameters has 77,120 bits."""
    for folder in ("once", "again"):
        simulation.run(parse(config(**sections), "test"), tmp_path / folder)
    rounds = read_table(tmp_path / "once", "rounds")
    buffered = "round" in sections
    assert rounds["arrived"].tolist() == [2 if buffered else 3] * 4
    assert (rounds["bits_up"] == 77120 * rounds["arrived"]).all()
    # In rounds all six candidates receive what is sent; without, those whose work ended: in the end two are broken off.
    assert (rounds["bits_down"] == np.multiply(77120, [2, 2, 2, 4] if buffered else [6] * 4)).all()
    for name in ("rounds.parquet", "updates.parquet", "metrics.parquet", "model.safetensors"):
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_run_in_which_all_take_part_is_fedavgs_with_equal_weights(tmp_path):
    everyone = {"admission": "count", "count": 6}
    for name, options in (("mifa", {}), ("fedavg", {"weights": "equal"})):
        algorithm = {"name": name} | options
        simulation.run(parse(config(round=everyone, algorithm=algorithm), "test"), tmp_path / name)
    mifa, fedavg = (read_table(tmp_path / name, "rounds") for name in ("mifa", "fedavg"))
    np.testing.assert_allclose(mifa["test_loss"], fedavg["test_loss"], rtol=1e-4)


TAKES = r"^algorithm\.\w+ = 'mifa' .*staleness\."
BUFFERED = {"protocol": "buffered", "admission": "count", "count": 3}


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            {"round": BUFFERED | {"protocol_options": {"server_lr": 0.5}}},
            r"^algorithm\.\w+ = 'mifa' does not go with round\.protocol_options\.",
        ),
        (
            {"round": {"late": "keep"}, "staleness": {"weight": "polynomial"}},
            TAKES,
        ),
        ({"round": BUFFERED, "staleness": {"weight": "hinge"}}, TAKES),
        (
            {"round": BUFFERED, "staleness": {"weight": "polynomial", "a": 2.0}},
            TAKES,
        ),
    ],
)
@pytest.mark.parametrize("name", ["mifa", "fedprox"])
def test_weights_that_its_step_does_not_take_are_refused(name, sections, said):
    """Also of its server half beside another algorithm."""
    algorithm = {"name": name, "server": "mifa"}
    with pytest.raises(EdgesimError, match=said) as refusal:
        simulation.complete(parse({"algorithm": algorithm, **sections}, "test"))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "sections",
    [
        {"round": BUFFERED},
        {"round": BUFFERED | {"protocol_options": {"server_lr": 1.0}}, "staleness": {"weight": "constant", "limit": 3}},
        {"round": {"late": "keep"}, "staleness": {"limit": 3}},
    ],
)
def test_a_limit_of_staleness_and_all_defaults_are_allowed(sections):
    assert simulation.complete(parse({"algorithm": {"name": "mifa"}, **sections}, "test")).algorithm.name == "mifa"
