"""Whole runs of a config of a test file with other sections."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import SCHEMAS, read_run, read_table
from edgesim.simulation import composition as simulation

TIMED: dict[str, Any] = {
    "data": {"dataset": "none", "partition": "fedteddi"},
    "learning": {"training": "none", "pretrain": True},
}
"""Sections of a run that does not train."""
TRAINING: dict[str, Any] = {
    "learning": {"training": "real", "pretrain": False, "back_end": "loop"},
    "evaluation": {"samples": 40},
}


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Sections of several configs, key by key, of which the later ones hold; None leaves a section out."""
    found: dict[str, Any] = {}
    for part in parts:
        for key, of in part.items():
            found[key] = (found.get(key) or {}) | of if isinstance(of, dict) else of
    return {key: of for key, of in found.items() if of is not None}


def config_of(*parts: Mapping[str, Any]) -> RunConfig:
    """The config of merged sections, without keys that are None."""
    given = {
        key: {name: value for name, value in of.items() if value is not None} if isinstance(of, dict) else of
        for key, of in merged(*parts).items()
    }
    return parse(given, "test")


class Played:
    """The folder of a run that was simulated; its tables are attributes, such as ``played.rounds``."""

    def __init__(self, folder: Path, result: simulation.RunResult) -> None:
        self.folder, self.result = folder, result

    def __getattr__(self, table: str) -> pd.DataFrame:
        if table not in SCHEMAS:
            raise AttributeError(table)
        setattr(self, table, read_table(self.folder, table))
        return getattr(self, table)

    @property
    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says."""
        return read_run(self.folder)

    @property
    def uploads(self) -> pd.DataFrame:
        """Rows of ``activities`` that are uploads."""
        return self.activities.query("activity == 'upload'")

    def metric(self, name: str, by: str = "round") -> pd.Series:
        """Values of ``metrics`` of a name, by round or by key."""
        return self.metrics[self.metrics["name"] == name].set_index(by)["value"]


def play(
    folder: Path, *parts: Mapping[str, Any], on_round: Callable[[Any], None] = lambda _: None, **sections: Any
) -> Played:
    """Simulate in a folder the config of some parts with further sections."""
    return Played(folder, simulation.run(config_of(*parts, sections), folder, on_round))


def write_rows(path: Path, columns: str, rows: Iterable[Iterable[Any] | str]) -> str:
    """Write a CSV file of rows, given as values or as text; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else ",".join(map(str, row)) for row in rows]
    path.write_text("\n".join([columns, *lines]) + "\n")
    return str(path)


def phones(folder: Path, *rows: tuple[float, float]) -> dict[str, Any]:
    """Sections of devices with links of their own: seconds a sample and bit/s of each."""
    numbered = [(device, *row) for device, row in enumerate(rows)]
    profile = write_rows(folder / "phones.csv", "device,s_per_sample,link_bps", numbered)
    return {"devices": {"count": len(rows), "profile": profile}, "radio": {"sharing": "own"}}


def stays(folder: Path, *rows: tuple[int, float, float], **options: Any) -> dict[str, Any]:
    """Section of devices that are available in spans: the device, and seconds at which one begins and ends."""
    file = write_rows(folder / "there.csv", "device,start_s,end_s", rows)
    return {"availability": {"model": "table", "file": file, **options}}


def by_rounds(folder: Path, *devices: str, **options: Any) -> dict[str, Any]:
    """Section of devices that are available in rounds, such as ``"101"``: in the first and in the third."""
    columns = ",".join(["device", *map(str, range(1, len(devices[0]) + 1))])
    file = write_rows(folder / "programme.csv", columns, [(device, *of) for device, of in enumerate(devices)])
    return {"availability": {"model": "table", "file": file, "slots": "rounds", **options}}


def configs(base: Mapping[str, Any]) -> Callable[..., RunConfig]:
    """Function that makes the config ``base`` with keys of sections, or whole values, changed; None leaves one out."""
    return lambda **sections: config_of(base, sections)


def plays(base: Mapping[str, Any]) -> Any:
    """Fixture that simulates the config ``base`` with other sections in a folder of a name."""

    @pytest.fixture
    def run(tmp_path):
        return lambda name="run", **sections: play(tmp_path / name, base, sections)

    return run


def slow_but(quick: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """Cases of a parametrised test, of which all but the quick ones are slow."""
    chosen = list(quick)
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if case in chosen else pytest.mark.slow)
        for case in cases
    ]
