"""The algorithm trains, and its option has an effect."""

from pathlib import Path
from typing import Any

import edgesim
from edgesim.templates.algorithm import Mine

CONFIG: dict[str, Any] = {
    "rounds": 2,
    "devices": {"count": 4},
    "round": {"admission": "count", "count": 2},
    "data": {"partition": "iid", "samples_per_device": 20},
    "learning": {"pretrain": False, "steps": 2},
    "evaluation": {"samples": 50},
}


def test_a_pull_to_the_start_changes_the_model(tmp_path: Path) -> None:
    """The same run with and without it ends with different losses."""
    losses = []
    for mu in (0.0, 1.0):
        algorithm = {"name": f"{Mine.__module__}.{Mine.__name__}", "mu": mu}
        run = edgesim.run(CONFIG | {"algorithm": algorithm}, tmp_path / f"mu-{mu:g}")
        losses.append(run.rounds["test_loss"].tolist()[-1])
    assert losses[0] != losses[1]
