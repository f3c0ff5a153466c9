"""Small runs for the tests of the door."""

import pytest
import small_runs

TIMING = small_runs.TIMING | {"devices": {"count": 6}, "round": {"payload_bits": 1e6}}
LEARNING = {
    "rounds": 4,
    "devices": {"count": 4},
    "round": {"admission": "count", "count": 2},
    "data": {"partition": "iid", "samples_per_device": 20},
    "learning": {"pretrain": False, "steps": 2, "lr": 0.1},
    "evaluation": {"samples": 100},
}


@pytest.fixture
def timing():
    return {key: dict(of) if isinstance(of, dict) else of for key, of in TIMING.items()}


@pytest.fixture
def learning():
    return {key: dict(of) if isinstance(of, dict) else of for key, of in LEARNING.items()}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
