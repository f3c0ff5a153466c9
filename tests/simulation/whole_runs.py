"""Whole runs of a config of a test file with other sections."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

TRAINING: dict[str, Any] = {
    "learning": {"training": "real", "pretrain": False, "back_end": "loop"},
    "evaluation": {"samples": 40},
}


def configs(base: Mapping[str, Any]) -> Callable[..., RunConfig]:
    """Function that makes the config ``base`` with keys of sections, or whole values, changed; None leaves one out."""

    def config(**sections: Any) -> RunConfig:
        both = {key: base.get(key, {}) | of if isinstance(of, dict) else of for key, of in sections.items()}
        return parse({key: of for key, of in {**base, **both}.items() if of is not None}, "test")

    return config


def runs(config: Callable[..., RunConfig]) -> Any:
    """Fixture that simulates such a config in a folder of a name, and returns the folder."""

    @pytest.fixture
    def run(tmp_path):
        def play(name="run", **sections):
            result = simulation.run(config(**sections), tmp_path / name)
            assert result.status == "finished", result.reason
            return tmp_path / name

        return play

    return run
