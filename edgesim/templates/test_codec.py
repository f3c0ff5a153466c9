"""Tests of the codec, by hand and in a run."""

from pathlib import Path

import torch

import edgesim
from edgesim.learning.codecs.transmission import charged_bits, receive
from edgesim.templates.codec import FewDigits

CONFIG = {
    "rounds": 2,
    "devices": {"count": 4},
    "data": {"partition": "iid", "samples_per_device": 20},
    "learning": {"pretrain": False, "steps": 2},
    "evaluation": {"samples": 50},
}


def test_further_digits_are_cut_off() -> None:
    """1 + 1/2 + 1/4 with one bit behind the point."""
    vector = torch.tensor([1.75, -1.75, 0.5, 0.0])
    assert receive(FewDigits(digits=1), vector, None, 0).tolist() == [1.5, -1.5, 0.5, 0.0]
    assert torch.equal(receive(FewDigits(digits=23), vector, None, 0), vector)


def test_a_number_loses_less_than_its_last_digit() -> None:
    """Over a thousand numbers of any size."""
    vector = torch.randn(1000, generator=torch.Generator().manual_seed(0)).exp()
    received = receive(FewDigits(digits=4), vector, None, 0)
    assert float(((vector - received) / vector).abs().max()) < 2**-4


def test_bits_are_those_of_the_digits() -> None:
    """16 a number by default."""
    assert charged_bits(FewDigits(), 10) == 160


def test_updates_of_a_run_are_charged_these_bits(tmp_path: Path) -> None:
    """Of 2,410 numbers with one digit 24,100 bits, and devices keep what the digit does not tell."""
    path = f"{FewDigits.__module__}.{FewDigits.__name__}"
    run = edgesim.run(CONFIG | {"upload": {"codec": path, "digits": 1}}, tmp_path / "run")
    uploads = run.activities.query("activity == 'upload' and outcome == 'done'")
    assert uploads["bits"].round().unique().tolist() == [24_100]
    assert run.config["upload"]["feedback"] == "residual"
