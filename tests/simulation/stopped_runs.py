"""Runs that are stopped again and again, beside one that is not."""

from pathlib import Path
from typing import Any

from edgesim.config import RunConfig
from edgesim.folder import checkpoints
from edgesim.folder.records import read_run
from edgesim.folder.run_progress import RunProgress
from edgesim.simulation import composition as simulation

OF_STOPS = {"wall_s", "resumed", "command", "checkpoint_bytes_at_most"}


class Broken(KeyboardInterrupt):
    """As if the process had been killed, in the middle of what follows a round's last checkpoint."""


def content(folder: Path) -> dict[str, bytes]:
    """What has to be the same, by the file's name: the model and all tables but that of wall times."""
    paths = [*folder.glob("*.parquet"), *folder.glob("model*.safetensors")]
    return {path.name: path.read_bytes() for path in sorted(paths) if path.name != "timing.parquet"}


def facts(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says but for what stops may change."""
    run = read_run(folder)
    run["digests"].pop("timing.parquet")
    return {key: value for key, value in run.items() if key not in OF_STOPS}


def stop_at(config: RunConfig, folder: Path, round: int | None, **how: Any) -> simulation.RunResult | None:
    """Run, or go on, with a checkpoint after each round, until the end of a round, behind which no checkpoint is."""

    def on_round(done: RunProgress) -> None:
        if done.round == round:
            raise Broken

    try:
        return simulation.run(config, folder, on_round, **{"checkpoint_s": 0.0, **how})
    except Broken:
        return None


def saved_rounds(folder: Path) -> list[int]:
    """Rounds of the checkpoints in a folder, the newest first."""
    return [int(path.name.split("-")[1]) for path in checkpoints.files(folder)]


def assert_stops_change_nothing(config: RunConfig, folder: Path, rounds: tuple[int, ...]) -> None:
    """A run that is stopped at the ends of rounds, each time by one round behind its checkpoint, has the same bytes."""
    simulation.run(config, folder / "undisturbed")
    before = 0
    for round in rounds:
        assert stop_at(config, folder / "stopped", round) is None
        assert saved_rounds(folder / "stopped")[0] == round - 1 > before
        before = round - 1
    last = stop_at(config, folder / "stopped", None)
    assert last is not None
    assert (last.status, last.resumed_after) == ("finished", before)
    found, expected = content(folder / "stopped"), content(folder / "undisturbed")
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []
    assert facts(folder / "stopped") == facts(folder / "undisturbed")
    assert not list((folder / "stopped").glob("checkpoint*")) + list((folder / "stopped").glob("*.arrow"))
