"""Tests of the metric, by hand and in a run."""

from pathlib import Path

import numpy as np

import edgesim
from edgesim.learning import measures
from edgesim.templates.metric import TopLosses

CONFIG = {
    "rounds": 2,
    "devices": {"count": 4},
    "data": {"partition": "iid", "samples_per_device": 20},
    "learning": {"pretrain": False, "steps": 2},
    "evaluation": {"samples": 50, "metrics": {f"{TopLosses.__module__}.{TopLosses.__name__}": {"share": 1.0}}},
}


def test_the_highest_losses_count() -> None:
    """Of ten losses 0 to 9 the highest fifth has the mean 8.5."""
    labels = np.zeros(10, dtype=np.int64)
    tested = measures.Tested(labels, labels, np.arange(10.0))
    assert TopLosses(share=0.2).measure(tested) == 8.5


def test_of_all_samples_it_is_the_test_loss(tmp_path: Path) -> None:
    """A run has a row of it for each test, the start model's in round 0."""
    run = edgesim.run(CONFIG, tmp_path / "run")
    rows = run.metrics[run.metrics["name"] == "metric"]
    assert rows["round"].tolist() == [0, 1, 2]
    assert np.allclose(rows["value"][1:], run.rounds["test_loss"])
