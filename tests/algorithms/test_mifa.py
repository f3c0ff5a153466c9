"""MIFA: rates that fall, late updates, waiting; `test_worked_numbers` and `test_plain_server` have the rest."""

import numpy as np
import pytest
import torch
from contract import make_config
from hypothesis import given, settings
from hypothesis import strategies as st
from quadratics import THREE_SIZES, TWO, Play, Quadratic

from edgesim.folder.records import read_table
from edgesim.learning.algorithms.mifa import Mifa
from edgesim.simulation import composition as simulation


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


def test_a_run_can_have_a_rate_at_which_what_was_brought_counts_by_one_over_the_rounds(tmp_path):
    """DPFL's own rate, .08 / (t + 1): what began in round tau counts (tau + 1) / (t + 1) in round t."""
    late = make_config(("mifa", "own"), "late", training="none", lr=0.04, lr_offset=1.0)
    simulation.run(late, tmp_path)
    updates = read_table(tmp_path, "updates")
    began = updates["task"]
    assert sorted((updates["round"] - began).unique()) == [0, 1]
    expected = (began + 1) / (updates["round"] + 1) / late.devices.count
    np.testing.assert_allclose(updates["weight"], expected, rtol=1e-14)


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


def test_while_it_waits_buffers_stay_with_the_model():
    waiting = Play(Mifa, [Quadratic(1.0, moments=(9.0,)), Quadratic(2.0, moments=(9.0,))], {"wait": True}, (0.0, 5.0))
    waiting.round(0)
    assert waiting.state.weights.tolist() == [0, 5]
