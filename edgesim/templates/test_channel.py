"""Tests of the path-loss law: both slopes, and no jump between them."""

from pathlib import Path

import pytest

from edgesim.radio.environment import Environment, load_environment
from edgesim.templates.channel import TwoSlopes

FILE = Path(__file__).with_name("channel.toml")


def test_loss_by_hand_on_both_sides_of_the_breakpoint() -> None:
    """40 + 20 log10(d) up to 100 m, from there on 40 dB for each factor of ten."""
    law = TwoSlopes(loss_at_1_m_db=40, breakpoint_m=100)
    assert law.loss_db([1, 10, 100, 1000]).tolist() == pytest.approx([40, 60, 80, 120])


def test_the_channel_file_names_the_law() -> None:
    """It is what ``radio.channel`` of a config may name."""
    environment = load_environment(str(FILE))
    assert isinstance(environment, Environment)
    assert isinstance(environment.path_loss, TwoSlopes)
